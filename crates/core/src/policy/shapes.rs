//! What public formats of secrets look like: how each begins, and of what it goes on, byte by byte.

use super::redact::Mark;

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
    Run { least: u64, others: &'static [u8] },
    /// Three parts of base64url with dots between.
    Jwt,
    /// `user:password@`, of which the password is the secret.
    Url,
    /// A block with this heading, if it is that of a private key.
    Block,
    /// The end of a block.
    BlockEnd,
}

const fn run(name: &'static str, anchor: &'static str, least: u64, others: &'static [u8]) -> Shape {
    Shape { name, anchor, rest: Rest::Run { least, others } }
}

/// The formats. Each begins with letters that nothing else begins with: digits alone, such as the 40 of a commit, are
/// never a secret by their form.
pub(super) const SHAPES: [Shape; 40] = [
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
    Shape { name: "private_key", anchor: "-----END", rest: Rest::BlockEnd },
];

/// How far the end of a secret may be from its beginning, in bytes, as long as it is not sure that it is one. What goes on
/// behind that is taken for one as long as it goes on, but a first part of a JWT: none is so long.
pub(super) const FAR: u64 = 8 * 1024;

/// How much of a block of a private key may have nothing of a key before the block is over.
const NO_KEY: u64 = 1024;

/// The fewest characters of base64 in a row that are taken for a part of a key.
const KEY: u64 = 24;

/// How many bytes the heading of a block has at most.
const HEADING: usize = 64;

/// The fewest characters of each part of a JWT, the `eyJ` left out; nobody has a shorter first part than
/// `eyJhbGciOiJub25lIn0`, nor a shorter second one than that of `{}`.
const JWT: [u64; 3] = [14, 3, 16];

impl Shape {
    /// Whether it may follow a letter or digit: nothing else has such a beginning in it, not even by chance. Then its first
    /// [`GLUED`] letters are not masked, since many a word ends with them.
    pub(super) const fn is_distinctive(&self) -> bool {
        let anchor = self.anchor.as_bytes();
        let ends_as_no_word = matches!(anchor[anchor.len() - 1], b'_' | b'-' | b'/');
        let is_short_sk = anchor[0] == b's' && anchor[1] == b'k' && anchor[2] == b'-';
        ends_as_no_word && anchor.len() > GLUED && !is_short_sk
    }

    /// Whether its beginning is masked, too.
    pub(super) const fn masks_anchor(&self) -> bool {
        matches!(self.rest, Rest::Run { .. } | Rest::Jwt)
    }
}

/// How many of the first letters of a token stay if it follows a letter or digit.
pub(super) const GLUED: usize = 3;

/// Something that began like a secret, and how far it is known to be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Track {
    shape: usize,
    /// Where what may be secret begins, or goes on behind what was masked.
    from: u64,
    /// Whether it is a secret, so that what goes on is masked as it comes.
    sure: bool,
    /// Whether a part of it was masked.
    counted: bool,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// So many characters came.
    Run(u64),
    /// So many characters of this part came.
    Jwt(usize, u64),
    /// The user's name, up to the colon.
    User,
    /// The password; whether any of it came.
    Password(bool),
    /// The heading as far as it came.
    Heading(Vec<u8>),
    /// The heading has what makes it one of a private key; how much followed, and whether the last was a dash.
    HeadingEnd(usize, bool),
    /// What follows the heading.
    Key(Key),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Key {
    /// How many characters of base64 came in a row.
    run: u64,
    /// How many bytes without anything of a key.
    without: u64,
    /// Up to where it is masked even if its end does not come: to the end of the line behind the last piece of a key.
    until: u64,
    /// How many line breaks are to come until there.
    lines: u8,
}

impl Track {
    /// What begins with an anchor whose first byte that is masked is `from`.
    pub(super) fn new(shape: usize, from: u64, next: u64) -> Option<Track> {
        let (from, state) = match SHAPES[shape].rest {
            Rest::Run { .. } => (from, State::Run(0)),
            Rest::Jwt => (from, State::Jwt(0, 0)),
            Rest::Url => (next, State::User),
            Rest::Block => (next, State::Heading(Vec::new())),
            Rest::BlockEnd => return None,
        };
        Some(Track { shape, from, sure: false, counted: false, state })
    }

    /// Whether one of this shape that begins now is a part of this one, or has the same end.
    pub(super) fn contains(&self, shape: usize) -> bool {
        self.shape == shape && !matches!(self.state, State::Jwt(1.., _))
    }

    /// From where on what came may be masked and is not yet.
    pub(super) fn open(&self, now: u64) -> u64 {
        match self.state {
            State::User | State::Heading(_) | State::HeadingEnd(..) => now,
            _ => self.from,
        }
    }

    /// Everything up to here was masked.
    pub(super) fn skip(&mut self, to: u64) {
        self.from = self.from.max(to);
    }

    /// Masks up to here.
    fn mask(&mut self, to: u64, marks: &mut Vec<Mark>) {
        if to > self.from {
            marks.push(Mark { name: SHAPES[self.shape].name, from: self.from, to, fresh: !self.counted });
            (self.from, self.counted) = (to, true);
        }
    }

    /// Takes the next byte, which stands at `at`; whether it goes on.
    pub(super) fn step(&mut self, byte: u8, at: u64, marks: &mut Vec<Mark>) -> bool {
        let next = at + 1;
        let goes_on = match &mut self.state {
            State::Run(length) => {
                let Rest::Run { least, others } = SHAPES[self.shape].rest else { return false };
                *length += 1;
                self.sure = *length >= least;
                is_of(byte, others)
            }
            State::Jwt(part, length) if byte == b'.' && *part < 2 && *length >= JWT[*part] => {
                (*part, *length) = (*part + 1, 0);
                true
            }
            State::Jwt(part, length) => {
                *length += 1;
                let is_far = next - self.from > FAR;
                self.sure |= (*part == 2 && *length >= JWT[2]) || (*part == 1 && is_far);
                is_of(byte, b"-_") && !(*part == 0 && is_far)
            }
            State::User => {
                if byte == b':' {
                    (self.from, self.state) = (next, State::Password(false));
                }
                is_of_authority(byte)
            }
            // RFC 3986: what stands before the last `@` of the authority is the user's, `user:password`.
            State::Password(any) => {
                let is_end = byte == b'@' && *any;
                *any = true;
                self.sure |= next - self.from > FAR;
                if is_end {
                    self.mask(at, marks);
                }
                is_of_authority(byte)
            }
            State::Heading(heading) => {
                heading.push(byte);
                let is_private = heading.ends_with(b"PRIVATE KEY");
                let goes_on = byte != b'\n' && heading.len() < HEADING;
                if is_private {
                    self.state = State::HeadingEnd(0, false);
                }
                is_private || goes_on
            }
            State::HeadingEnd(length, is_dash) => {
                let is_over = *length >= HEADING || matches!(byte, b'\n' | b'\\') || (*is_dash && byte != b'-');
                (*length, *is_dash) = (*length + 1, byte == b'-');
                if is_over {
                    (self.from, self.state) = (at, State::Key(Key::default()));
                    return self.step(byte, at, marks);
                }
                true
            }
            State::Key(key) => {
                let masked = key.step(byte, next);
                let goes_on = key.without <= NO_KEY;
                if masked {
                    self.mask(next, marks);
                }
                return if goes_on { true } else { self.give_up(marks) };
            }
        };
        if goes_on && self.sure {
            self.mask(next, marks);
        }
        goes_on
    }

    /// A block begins, or ends, here; whether this one goes on.
    pub(super) fn meets(&mut self, ends: bool, at: u64, marks: &mut Vec<Mark>) -> bool {
        match &self.state {
            State::Key(_) if ends => self.mask(at, marks),
            State::Key(_) => return self.give_up(marks),
            State::Heading(_) | State::HeadingEnd(..) => {}
            _ => return true,
        }
        false
    }

    /// The end of the output.
    pub(super) fn finish(mut self, marks: &mut Vec<Mark>) {
        self.give_up(marks);
    }

    fn give_up(&mut self, marks: &mut Vec<Mark>) -> bool {
        if let State::Key(key) = &self.state {
            self.mask(key.until, marks);
        }
        false
    }
}

impl Key {
    /// Takes the next byte; whether everything up to it is a key.
    fn step(&mut self, byte: u8, next: u64) -> bool {
        self.run = if is_of(byte, b"+/") { self.run + 1 } else { 0 };
        let is_key = self.run >= KEY;
        self.without = if is_key { 0 } else { self.without + 1 };
        if is_key {
            self.lines = 2;
        }
        if self.lines > 0 {
            self.until = next;
            self.lines -= u8::from(byte == b'\n');
        }
        is_key
    }
}

/// Whether a byte is a letter, a digit or one of `others`.
fn is_of(byte: u8, others: &[u8]) -> bool {
    byte.is_ascii_alphanumeric() || others.contains(&byte)
}

fn is_of_authority(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'/' | b'"' | b'\'' | b'<' | b'>' | b'?' | b'#')
}
