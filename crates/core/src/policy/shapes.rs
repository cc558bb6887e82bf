//! What public formats of secrets look like: how each begins, and of what it goes on.

/// One format.
#[derive(Debug)]
pub(super) struct Shape {
    /// What it is called in counts.
    pub(super) name: &'static str,
    /// How each of them begins.
    pub(super) anchor: &'static str,
    /// What follows.
    pub(super) rest: Rest,
}

/// What follows the beginning of a secret.
#[derive(Debug)]
pub(super) enum Rest {
    /// So many characters at least, of letters, digits and these.
    Run { least: usize, others: &'static [u8] },
    /// Three parts of base64url with dots between.
    Jwt,
    /// `user:password@`, of which the password is the secret.
    Url,
    /// A block up to its `-----END`.
    Block,
}

const fn run(name: &'static str, anchor: &'static str, least: usize, others: &'static [u8]) -> Shape {
    Shape { name, anchor, rest: Rest::Run { least, others } }
}

/// The formats. Each begins with letters that nothing else begins with: digits alone, such as the 40 of a commit, are
/// never a secret by their form.
pub(super) const SHAPES: [Shape; 39] = [
    run("github", "ghp_", 36, b""),
    run("github", "gho_", 36, b""),
    run("github", "ghu_", 36, b""),
    run("github", "ghs_", 36, b"._-"),
    run("github", "ghr_", 36, b""),
    run("github", "github_pat_", 36, b"_"),
    run("gitlab", "glpat-", 20, b"-_."),
    run("gitlab", "gldt-", 20, b"-_."),
    run("gitlab", "glrt-", 20, b"-_."),
    run("aws", "AKIA", 16, b""),
    run("aws", "ASIA", 16, b""),
    run("slack", "xoxb-", 20, b"-"),
    run("slack", "xoxp-", 20, b"-"),
    run("slack", "xoxa-", 20, b"-"),
    run("slack", "xoxr-", 20, b"-"),
    run("slack", "xoxs-", 20, b"-"),
    run("slack", "xapp-", 20, b"-"),
    run("slack", "https://hooks.slack.com/services/", 24, b"/"),
    run("anthropic", "sk-ant-", 24, b"-_"),
    run("openai", "sk-proj-", 24, b"-_"),
    run("openai", "sk-svcacct-", 24, b"-_"),
    run("openai", "sk-admin-", 24, b"-_"),
    run("openrouter", "sk-or-", 24, b"-_"),
    run("openai", "sk-", 32, b""),
    run("google", "AIza", 35, b"-_"),
    run("google", "ya29.", 24, b"-_"),
    run("groq", "gsk_", 40, b""),
    run("xai", "xai-", 40, b""),
    run("hugging_face", "hf_", 30, b""),
    run("npm", "npm_", 36, b""),
    run("pypi", "pypi-", 48, b"-_"),
    run("stripe", "sk_live_", 20, b""),
    run("stripe", "sk_test_", 20, b""),
    run("stripe", "rk_live_", 20, b""),
    run("digitalocean", "dop_v1_", 60, b""),
    run("sendgrid", "SG.", 60, b"-_."),
    Shape { name: "jwt", anchor: "eyJ", rest: Rest::Jwt },
    Shape { name: "url_password", anchor: "://", rest: Rest::Url },
    Shape { name: "private_key", anchor: "-----BEGIN ", rest: Rest::Block },
];

/// The longest block of a private key, from its beginning to its end, in bytes.
pub(super) const BLOCK: usize = 16 * 1024;

/// What a shape makes of the text from its anchor on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is no secret.
    No,
    /// These bytes are the secret.
    Secret(std::ops::Range<usize>),
    /// The text ends before it can be said; what may be secret begins here.
    Open(usize),
}

impl Shape {
    /// Looks at `text`, whose byte `at` is the first of the anchor.
    pub(super) fn look(&self, text: &[u8], at: usize) -> Found {
        let after = at + self.anchor.len();
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        match self.rest {
            Rest::Run { .. } | Rest::Jwt if at > 0 && is_word(&text[at - 1]) => Found::No,
            Rest::Run { least, others } => {
                let end = after + run_of(&text[after..], others);
                match end - after >= least {
                    true => Found::Secret(at..end),
                    false if end == text.len() => Found::Open(at),
                    false => Found::No,
                }
            }
            Rest::Jwt => jwt(text, at, after),
            Rest::Url => url(text, after),
            Rest::Block => block(text, after),
        }
    }
}

/// How many bytes are letters, digits or one of `others`.
fn run_of(text: &[u8], others: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || others.contains(byte)).count()
}

/// The shortest first part of a token is `eyJhbGciOiJub25lIn0`, and nobody's second part is shorter.
fn jwt(text: &[u8], at: usize, after: usize) -> Found {
    let mut end = after;
    for (part, least) in [14, 16, 16].into_iter().enumerate() {
        if part > 0 {
            match text.get(end) {
                None => return Found::Open(at),
                Some(b'.') => end += 1,
                Some(_) => return Found::No,
            }
        }
        let length = run_of(&text[end..], b"-_");
        end += length;
        if length < least {
            return if end == text.len() { Found::Open(at) } else { Found::No };
        }
    }
    Found::Secret(at..end)
}

fn url(text: &[u8], after: usize) -> Found {
    let is_part =
        |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'"' | b'\'' | b'<' | b'>' | b'?' | b'#');
    // RFC 3986: what stands before the last `@` of the authority is the user's, `user:password`.
    let length = text[after..].iter().take_while(|byte| is_part(byte)).take(512).count();
    let authority = &text[after..after + length];
    let Some(colon) = authority.iter().position(|byte| *byte == b':') else { return Found::No };
    let password = after + colon + 1;
    match authority.iter().rposition(|byte| *byte == b'@') {
        Some(sign) if sign > colon + 1 => Found::Secret(password..after + sign),
        Some(_) => Found::No,
        // Digits are the port of a host, until something else comes.
        None if after + length == text.len() && !text[password..].iter().all(u8::is_ascii_digit) => {
            Found::Open(password)
        }
        None => Found::No,
    }
}

/// A block that is cut off is as secret as a whole one; what no key is made of ends it.
fn block(text: &[u8], after: usize) -> Found {
    let heading = text[after..].iter().take(64).position(|byte| matches!(byte, b'\n' | b'\\'));
    let Some(body) = heading.map(|line| after + line).filter(|body| contains(&text[after..*body], b"PRIVATE KEY"))
    else {
        return Found::No;
    };
    let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\r\n\\ :,-".contains(byte);
    let length = text[body..].iter().take(BLOCK).take_while(|byte| is_key(byte)).count();
    let length = find(&text[body..body + length], b"-----END").unwrap_or(length);
    Found::Secret(body..body + length)
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    find(text, part).is_some()
}
