//! Tests of redaction.

use super::*;

const GITHUB: &str = "ghp_000000000000000000000000000000000000";
const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nBG5vbmUAAAAEbm9uZQ==\n-----END OPENSSH PRIVATE KEY-----\n";

fn redactor() -> Redactor {
    Redactor::new([b"correct-horse-battery".to_vec(), b"short".to_vec()])
}

/// Bytes of secrets that are shown.
fn leaked(shown: &str, whole: &str) -> usize {
    shown.bytes().zip(whole.bytes()).filter(|(shown, whole)| *whole == MASK && *shown != MASK).count()
}

fn masked(text: &str) -> String {
    redactor().text(text)
}

/// Covers: R5
#[test]
fn r5_secrets_by_their_form() {
    let stars = |text: &str| "*".repeat(text.len());
    let jwt =
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
    for secret in [
        GITHUB,
        "github_pat_11AAAAAAA0aaaaaaaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "glpat-aaaaaaaaaaaaaaaaaaaa",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdefghijkl",
        "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "sk-proj-aaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "AIzaSyA0000000000000000000000000000000a",
        "hf_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "npm_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        jwt,
        "correct-horse-battery",
    ] {
        assert_eq!(masked(secret), stars(secret), "{secret}");
        assert_eq!(masked(&format!("A={secret}\n\"{secret}\"")), format!("A={0}\n\"{0}\"", stars(secret)), "{secret}");
    }
    assert_eq!(masked("postgres://me:hunter22@host/db"), "postgres://me:********@host/db");
    let key = masked(&format!("x\n{KEY}y\n"));
    assert!(!key.contains("b3Blbn") && !key.contains("BG5v"), "{key}");
    assert!(
        key.starts_with("x\n-----BEGIN OPENSSH") && key.ends_with("-----END OPENSSH PRIVATE KEY-----\ny\n"),
        "{key}"
    );
    assert_eq!(key.lines().count(), 6);
}

/// Covers: R5
#[test]
fn r5_what_is_no_secret_stays() {
    for text in [
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "http://localhost:8080/x?a=b@c",
        "git@github.com:a/b.git https://example.com:443 user@example.com",
        "task-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "ghp_ ghp_short AKIA sk-learn eyJ",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        "-----BEGIN PRIVATE KEY-----\n(not here)\n",
        "a short word",
        "",
    ] {
        assert_eq!(masked(text), text);
    }
}

/// Covers: R5, C21
#[test]
fn r5_no_cut_shows_a_part_of_a_secret() {
    let redactor = redactor();
    for secret in [GITHUB, "correct-horse-battery", KEY] {
        let text = format!("one\ntwo {secret} three\nfour correct-horse-battery\n");
        let whole = redactor.text(&text);
        for first in 0..=text.len() {
            let mut stream = Stream::default();
            let mut shown = stream.push(&redactor, &text.as_bytes()[..first]).0;
            // A live read shows the same as far as it goes, and masks what is open.
            let mut live = text.as_bytes()[..first].to_vec();
            redactor.mask(&mut live, Edges { cut_after: true, ..Edges::default() });
            let live = String::from_utf8(live).expect("ASCII");
            assert_eq!(leaked(&live, &whole), 0, "cut at {first}: {live}");
            shown.extend(stream.push(&redactor, &text.as_bytes()[first..]).0);
            shown.extend(stream.finish(&redactor).0);
            let shown = String::from_utf8(shown).expect("ASCII");
            assert_eq!(shown, whole, "cut at {first}");
        }
        let mut stream = Stream::default();
        let mut shown: Vec<u8> = text.bytes().flat_map(|byte| stream.push(&redactor, &[byte]).0).collect();
        shown.extend(stream.finish(&redactor).0);
        let shown = String::from_utf8(shown).expect("ASCII");
        assert_eq!(shown, whole, "byte by byte");
    }
}

/// Covers: R5
#[test]
fn r5_the_edges_of_a_cut_text() {
    let redactor = redactor();
    let both = Edges { cut_before: true, cut_after: true };
    let mut text = b"0000000000000 tail\nhead ghp_0000".to_vec();
    redactor.mask(&mut text, both);
    assert_eq!(text, b"************* tail\nhead ********");
    let mut text = b"tery x correct-h".to_vec();
    redactor.mask(&mut text, both);
    assert_eq!(text, b"**** x *********");
    let mut text = b"a line\nand more".to_vec();
    redactor.mask(&mut text, both);
    assert_eq!(text, b"a line\nand more");
    // The first line drawn anew begins the text once more, the second one does not.
    let mut text = b"50 %\rtery\r0000000000000 tail\n50 %\rtery".to_vec();
    redactor.mask(&mut text, both);
    assert_eq!(text, b"50 %\r****\r************* tail\n50 %\rtery");
}

/// Covers: R5
#[test]
fn r5_an_escape_sequence_hides_nothing() {
    let redactor = redactor();
    let text = format!("\x1b[32m{}\x1b[1m{}\x1b[0m ok\n", &GITHUB[..10], &GITHUB[10..]);
    let mut bytes = text.clone().into_bytes();
    let counts = redactor.mask(&mut bytes, Edges::default());
    let shown = crate::text::readable(&bytes);
    assert!(!shown.contains("0000") && shown.ends_with(" ok\n"), "{shown}");
    assert_eq!(counts, Counts::from([("github", 1)]));
    assert_eq!(bytes.len(), text.len());
}

/// Covers: R5
#[test]
fn r5_nothing_is_held_back_of_ordinary_text() {
    let redactor = redactor();
    let mut stream = Stream::default();
    for text in ["Password: ", "one\n", "http://localhost:", "8080\nx\x1b[1mend"] {
        assert_eq!(stream.push(&redactor, text.as_bytes()), (text.as_bytes().to_vec(), Counts::new()));
        assert_eq!(stream.held(), 0);
    }
}

/// A private key in so many lines.
fn long_key(lines: usize) -> String {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n";
    format!("-----BEGIN PRIVATE KEY-----\n{}short=\n-----END PRIVATE KEY-----\n", line.repeat(lines))
}

/// Covers: R5
#[test]
fn r5_a_private_key_is_masked_up_to_its_end() {
    let prefixed = |prefix: &str| long_key(3).lines().map(|line| format!("{prefix}{line}\n")).collect::<String>();
    let armour = "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2.0.22 (GNU/Linux)\nComment: (one)\n\n\
                  MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n=aB3d\n\
                  -----END PGP PRIVATE KEY BLOCK-----\n";
    for text in [
        long_key(3).replace('\n', " "),
        long_key(3).replace('\n', "\\n"),
        long_key(3).replace('\n', "\r\n"),
        long_key(1).replace('\n', ""),
        prefixed("\t"),
        prefixed("> "),
        prefixed("     1\t"),
        prefixed("| "),
        armour.to_owned(),
        long_key(1000),
    ] {
        let shown = masked(&format!("{text}after it\n"));
        assert!(!shown.contains("MIIE") && !shown.contains("VJTU"), "{shown}");
        assert!(!shown.contains("short") && !shown.contains("aB3d"), "{shown}");
        assert!(shown.contains("-----END") && shown.ends_with("after it\n"), "{shown}");
    }
    // Without its end: the rest of the line behind the last piece, and one line, then it is over.
    let cut = long_key(1000);
    let cut = format!("{}\nan ordinary line\n{}", &cut[..cut.len() - 40], "and more of them\n".repeat(100));
    let shown = masked(&cut);
    assert!(!shown.contains("MIIE") && shown.ends_with("\nand more of them\n"), "{shown}");
    assert!(shown.matches("and more").count() > 97, "{shown}");
    // What comes before another block is over, too.
    let text = "-----BEGIN PRIVATE KEY-----\n(none)\n-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n";
    assert_eq!(masked(text), text);
}

/// Covers: R5
#[test]
fn r5_a_token_behind_whatever_it_follows() {
    let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
    let openai = format!("sk-{}", "a1".repeat(20));
    for before in
        ["\\n", "\\t", "token%3D", "x_", "\\u000a", "\\x0a", "\\012", "^[[32m", "\\u001b[1;31m", "(", "a\t", ""]
    {
        for secret in [GITHUB, jwt, &openai, "AKIAIOSFODNN7EXAMPLE"] {
            let shown = masked(&format!("{before}{secret} x"));
            assert_eq!(shown, format!("{before}{} x", "*".repeat(secret.len())));
        }
    }
    // Behind a letter its first three letters stay, which everybody knows.
    assert_eq!(masked(&format!("token{GITHUB}")), format!("tokenghp{}", "*".repeat(GITHUB.len() - 3)));
}

/// Covers: R5
#[test]
fn r5_what_sequences_hide_is_looked_at_too() {
    let redactor = redactor();
    let (one, two) = GITHUB.split_at(14);
    let hides = |text: &[u8]| {
        let mut bytes = text.to_vec();
        redactor.mask(&mut bytes, Edges::default());
        let (raw, clean) = (String::from_utf8_lossy(&bytes).into_owned(), crate::text::readable(&bytes));
        assert!(!raw.contains("00000") && !clean.contains("00000"), "{text:?}: {raw:?}, {clean:?}");
        assert!(!raw.contains("horse"), "{text:?}: {raw:?}");
        let mut stream = Stream::default();
        let mut shown: Vec<u8> = text.iter().flat_map(|byte| stream.push(&redactor, &[*byte]).0).collect();
        shown.extend(stream.finish(&redactor).0);
        assert_eq!(shown, bytes, "{text:?} byte by byte");
    };
    for whole in [GITHUB, "correct-horse-battery"] {
        for (begin, end) in
            [("\x1b]0;", "\x07v\n"), ("\x1b]8;;http://x/", "\x1b\\v\n"), ("\x1bP", "\x1b\\"), ("\x1b[", "m")]
        {
            hides(format!("x{begin}{whole}{end}").as_bytes());
        }
    }
    for inside in [
        &b"\xc2\x9b0m"[..],
        b"\x9b0m",
        b"\x9d0;x\x9c",
        b"\x1b[0m",
        b"\x1b(B",
        b"\x1b[3\x07m",
        b"\x1b]0;x\x18",
        b"\x1bPx\x07y\x1b\\",
        b"\0",
        b"\x08",
        b"\xe0\x9b0m",
        b"\xc2\x85",
    ] {
        let clean = crate::text::readable(&[b"a", inside, b"b"].concat());
        assert!(clean == "ab" || clean == "a\u{fffd}b", "{inside:?}: {clean:?}");
        if clean == "ab" {
            hides(&[one.as_bytes(), inside, two.as_bytes(), b" x\n"].concat());
            hides(&[b"correct-h", inside, b"orse-battery\n"].concat());
        }
    }
    // A picture between two halves is longer than what is waited for.
    hides(format!("{one}\x1bP{}\x1b\\{two}\n", "q".repeat(10_000)).as_bytes());
}

/// Covers: R5
#[test]
fn r5_a_value_is_the_same_however_it_is_laid_out() {
    let redactor =
        Redactor::new([b" one-line-of-it\nand-another\n".to_vec(), b"  x-trimmed ".to_vec(), b"  x-trim".to_vec()]);
    assert_eq!(redactor.text("a one-line-of-it\r\nand-another\r\nb"), "a **************\r\n***********\r\nb");
    assert_eq!(redactor.text("(x-trimmed)"), "(*********)");
    assert_eq!(redactor.text("x-trim"), "x-trim", "too short without its spaces");
    let long = "p".repeat(600);
    assert_eq!(masked(&format!("https://u:{long}@host/")), format!("https://u:{}@host/", "*".repeat(600)));
    assert_eq!(masked("https://u:p@ss@host:80/"), "https://u:****@host:80/");
}

/// Covers: R5, C21
#[test]
fn r5_the_beginning_of_a_secret_is_not_given_away() {
    let redactor = redactor();
    for (secret, shown) in [
        ("https://u:12345678", "https://u:"),
        ("https://u:12345678@ho", "https://u:********"),
        ("c", ""),
        ("correct-hors", ""),
        ("gh", ""),
        ("a ghp_0000", "a "),
        ("eyJhbGciOiJIUzI1NiJ9.eyJ", ""),
        ("-----BEGIN PRIVATE KEY-----\nMII", "-----BEGIN PRIVATE KEY-----"),
    ] {
        let mut stream = Stream::default();
        let given: Vec<u8> = secret.bytes().flat_map(|byte| stream.push(&redactor, &[byte]).0).collect();
        assert_eq!(String::from_utf8_lossy(&given), shown, "{secret}");
        assert_eq!(stream.held(), secret.len() - shown.len(), "{secret}");
        let mut live = secret.as_bytes().to_vec();
        redactor.mask(&mut live, Edges { cut_after: true, ..Edges::default() });
        assert!(live[shown.len()..].iter().all(|byte| matches!(byte, b'*' | b'\n')), "{secret}");
    }
}

/// Numbers in a random order that is always the same (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("a small number")
    }
}

/// Covers: R5
#[test]
fn r5_chunks_never_change_what_is_masked() {
    let redactor =
        Redactor::new([b"correct-horse-battery".to_vec(), b"battery-staple".to_vec(), b"aaaaaaaaab".to_vec()]);
    let key = long_key(2);
    let pieces = [
        GITHUB,
        "ghp_",
        "0000000",
        "correct-",
        "horse-",
        "battery",
        "-staple",
        "aaaa",
        "aaaaaaaaab",
        "eyJ",
        "hbGciOiJIUzI1NiJ9",
        ".",
        "https://",
        "u:",
        "12345",
        "@",
        "host/",
        &key,
        &key[..60],
        "-----END",
        "-----BEGIN ",
        "\n",
        " ",
        "\r\n",
        "\x1b[1m",
        "\x1b]0;",
        "\x07",
        "\x1b",
        "\u{9b}",
        "m",
        "\u{e9}",
        "\\n",
        "word",
        "s",
        "k-",
        "sk-ant-",
        "0",
        "\0",
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..400 {
        let mut text = Vec::new();
        for _ in 0..=random.below(14) {
            text.extend_from_slice(pieces[random.below(pieces.len())].as_bytes());
            if random.below(9) == 0 {
                text.push([0x9b, 0xc2, 0xe0, 0x9d][random.below(4)]);
            }
        }
        let mut whole = text.clone();
        let counts = redactor.mask(&mut whole, Edges::default());
        let (mut stream, mut shown, mut counted, mut from) = (Stream::default(), Vec::new(), Counts::new(), 0);
        while from < text.len() {
            let to = text.len().min(from + 1 + random.below(30));
            let (bytes, counts) = stream.push(&redactor, &text[from..to]);
            shown.extend(bytes);
            add_up(&mut counted, counts);
            // A reader of what there is by now sees no more than one of all.
            let mut live = text[..to].to_vec();
            redactor.mask(&mut live, Edges { cut_after: true, ..Edges::default() });
            let told = |at: usize| whole[at] == MASK && live[at] != MASK && text[at] != MASK;
            assert!(!(0..to).any(told), "{:?} up to {to}", String::from_utf8_lossy(&text));
            from = to;
        }
        let (bytes, counts_at_end) = stream.finish(&redactor);
        shown.extend(bytes);
        add_up(&mut counted, counts_at_end);
        assert_eq!((&shown, &counted), (&whole, &counts), "{:?}", String::from_utf8_lossy(&text));
    }
}

/// Covers: R5
#[test]
fn r5_the_work_grows_with_the_bytes_alone_and_little_is_held() {
    let redactor = Redactor::new([b"correct-horse-battery".to_vec(), [b"a".repeat(500), b"b".to_vec()].concat()]);
    let key = "-----BEGIN PRIVATE KEY-----\n";
    for unit in [
        "eyJ",
        "eyJ.",
        "eyJhbGciOiJIUzI1NiJ9.",
        "://u:",
        "a",
        "ghp_",
        "ghp_0",
        "sk-ant-",
        "-----BEGIN ",
        key,
        "correct-",
        "x\x1b]",
    ] {
        for begin in ["", "eyJhbGciOiJIUzI1NiJ9.", "https://u:", key, "ghp_"] {
            let text = format!("{begin}{}", unit.repeat(100_000 / unit.len()));
            let (mut stream, mut came) = (Stream::default(), 0);
            for chunk in text.as_bytes().chunks(4096) {
                came += stream.push(&redactor, chunk).0.len();
                assert!(stream.held() <= 16 * 1024, "{begin} {unit}: {} are held", stream.held());
            }
            came += stream.finish(&redactor).0.len();
            assert_eq!(came, text.len());
            let work = stream.scan.work();
            assert!(work <= 8 * text.len() as u64, "{begin} {unit}: {work} looks at {} bytes", text.len());
        }
    }
    // What is longer than any token is shown, and what has no end is masked as long as it goes on.
    let base64 = format!("eyJ{}\n", "QUJD".repeat(20_000));
    assert_eq!(masked(&base64), base64);
    let password = "p".repeat(50_000);
    assert!(!masked(&format!("https://u:{password} x")).contains(&password[..9 * 1024]));
}

/// Of a line that was drawn anew the text has what follows the last carriage return, whatever stood there before.
///
/// Covers: R5
#[test]
fn r5_a_value_of_several_lines_is_masked_also_where_its_lines_were_drawn_anew() {
    let redactor = Redactor::new([b"two\nlines of it\nand a third".to_vec()]);
    let plain = "x\ntwo\n.. 50 %\r\r\rlines of it\n.. 70 %\rlines\rand a third\ny\n";
    let masked = "x\n***\n*******\r\r\r***********\n*******\r*****\r***********\ny\n";
    assert_eq!(redactor.text(plain), masked);
    let (mut stream, mut shown) = (Stream::default(), Vec::new());
    for byte in plain.as_bytes() {
        shown.extend(stream.push(&redactor, &[*byte]).0);
        assert_eq!(leaked(&String::from_utf8_lossy(&shown), masked), 0);
    }
    shown.extend(stream.finish(&redactor).0);
    assert_eq!(String::from_utf8_lossy(&shown), masked);
    // What is not drawn anew is none of it, and a line is not waited for without an end.
    assert_eq!(redactor.text("two\n.. 50 %lines of it\nand a third"), "two\n.. 50 %lines of it\nand a third");
    let long = format!("two\n{}", ".".repeat(100_000));
    let mut stream = Stream::default();
    let shown = stream.push(&redactor, long.as_bytes()).0;
    assert_eq!((&shown[..8], stream.held()), (&b"***\n...."[..], 0));
    let text = redactor.text(&format!("{long}\rlines of it\nand a third\n"));
    assert!(text.starts_with("***\n....") && text.ends_with(".\r***********\n***********\n"), "{}", &text[99_990..]);
}
