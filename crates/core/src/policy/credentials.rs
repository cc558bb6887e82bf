//! Which environment variables hold a credential, by their names.

/// Names that are credentials as a whole.
const EXACT: [&str; 9] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "API_KEY", "APIKEY", "PGPASSWORD", "MYSQL_PWD"];

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
    is_credential(name) && value.len() >= SHORTEST && !is_path(value)
}

/// As many letters and digits in a row, of upper and of lower case, are no name of a file.
const RANDOM: usize = 16;

/// Whether a value is the path of a file, which may be shown, and no secret that happens to begin as one: it has several
/// names, it does not end as base64 does, and none of its names is random.
fn is_path(value: &[u8]) -> bool {
    let names = value.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).count();
    let is_random = |word: &[u8]| {
        let has = |class: fn(&u8) -> bool| word.iter().any(class);
        word.len() >= RANDOM && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
    };
    let mut words = value.split(|byte| !byte.is_ascii_alphanumeric());
    value.starts_with(b"/") && names >= 2 && !value.ends_with(b"=") && !words.any(is_random)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: R5
    #[test]
    fn r5_credentials_are_known_by_their_names() {
        for name in [
            "GITHUB_TOKEN",
            "openai_api_key",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_ACCESS_KEY_ID",
            "TOKEN",
            "secret_x",
            "PASSPHRASE",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["PATH", "HOME", "TOKENIZERS_PARALLELISM", "KEYBOARD", "SSH_AUTH_SOCK", "PWD", "MONKEY", "OLDPWD"] {
            assert!(!is_credential(name), "{name}");
        }
        assert!(is_secret("X_TOKEN", b"12345678"));
        assert!(!is_secret("X_TOKEN", b"1234567"), "too short");
        for path in [
            "/home/me/key.json",
            "/run/secrets/db",
            "/home/me/MyProject2024/client-key.pem",
            "/var/lib/0123456789abcdef0",
        ] {
            assert!(!is_secret("GOOGLE_APPLICATION_CREDENTIALS", path.as_bytes()), "a file's path: {path}");
        }
        for secret in ["/aB3xY9zQ+", "/aB3xY9/Qw==", "/K7MDENG/bPxRfiCYEXAMPLE1KEY", "/hunter-two"] {
            assert!(is_secret("X_TOKEN", secret.as_bytes()), "it only begins as a path does: {secret}");
        }
    }
}
