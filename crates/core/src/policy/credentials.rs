//! Which environment variables hold a credential, by their names.

/// Names that are credentials as a whole.
const EXACT: [&str; 8] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "PGPASSWORD", "MYSQL_PWD"];

/// Beginnings of names of credentials.
const PREFIXES: [&str; 4] = ["SECRET_", "PASSWORD_", "TOKEN_", "API_KEY_"];

/// Ends of names of credentials.
const SUFFIXES: [&str; 17] = [
    "_TOKEN",
    "_SECRET",
    "_PASSWORD",
    "_PASSWD",
    "_PASSPHRASE",
    "_PASS",
    "_PWD",
    "_PAT",
    "_KEY",
    "_APIKEY",
    "_KEY_ID",
    "_CREDENTIALS",
    "_CREDENTIAL",
    "_AUTH",
    "_COOKIE",
    "_DSN",
    "_SECRET_VALUE",
];

/// The shortest value that counts as a secret, in bytes: a shorter one stands by chance in any text.
pub const SHORTEST: usize = 8;

/// Whether a variable of this name holds a credential. Letter case plays no part.
#[must_use]
pub fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    EXACT.contains(&name.as_str())
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether this entry of an environment is a secret that must not be shown: a credential by its name, whose value is
/// long enough and no path of a file.
#[must_use]
pub fn is_secret(name: &str, value: &[u8]) -> bool {
    is_credential(name) && value.len() >= SHORTEST && !value.starts_with(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: R5
    #[test]
    fn r5_credentials_are_known_by_their_names() {
        for name in
            ["GITHUB_TOKEN", "openai_api_key", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "TOKEN", "secret_x"]
        {
            assert!(is_credential(name), "{name}");
        }
        for name in ["PATH", "HOME", "TOKENIZERS_PARALLELISM", "KEYBOARD", "SSH_AUTH_SOCK", "PWD", "MONKEY", "OLDPWD"] {
            assert!(!is_credential(name), "{name}");
        }
        assert!(is_secret("X_TOKEN", b"12345678"));
        assert!(!is_secret("X_TOKEN", b"1234567"), "too short");
        assert!(!is_secret("GOOGLE_APPLICATION_CREDENTIALS", b"/home/me/key.json"), "a file's path");
    }
}
