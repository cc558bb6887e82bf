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
            assert!(leaked(&live, &whole) < FEWEST, "cut at {first}: {live}");
            shown.extend(stream.push(&redactor, &text.as_bytes()[first..]).0);
            shown.extend(stream.finish(&redactor).0);
            let shown = String::from_utf8(shown).expect("ASCII");
            // At most the public letters at the beginning, or fewer bytes of a value than tell anything, went out.
            assert!(leaked(&shown, &whole) < FEWEST, "cut at {first}: {shown}");
        }
        let mut stream = Stream::default();
        let mut shown: Vec<u8> = text.bytes().flat_map(|byte| stream.push(&redactor, &[byte]).0).collect();
        shown.extend(stream.finish(&redactor).0);
        let shown = String::from_utf8(shown).expect("ASCII");
        assert!(shown.len() == whole.len() && leaked(&shown, &whole) < 2 * FEWEST, "{shown}");
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
    for text in ["Password: ", "one\n", "http://localhost:8080", "\nx\x1b[1mend"] {
        assert_eq!(stream.push(&redactor, text.as_bytes()), (text.as_bytes().to_vec(), Counts::new()));
        assert_eq!(stream.held(), 0);
    }
}
