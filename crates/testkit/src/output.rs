//! What one finished call printed and how it ended.

use std::fmt;

use crate::contract;
use crate::json::Json;

/// One call that has ended.
#[derive(Clone)]
pub struct Output {
    /// The arguments, for the story of a failure.
    pub args: Vec<String>,
    /// The exit code, or nothing when a signal ended the call.
    pub code: Option<i32>,
    /// The signal that ended the call, if one did.
    pub signal: Option<i32>,
    /// Every byte of standard output.
    pub stdout: Vec<u8>,
    /// Every byte of standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Asserts the exit code and hands the output on.
    ///
    /// # Panics
    /// When the code is another one.
    #[track_caller]
    pub fn exits(self, code: i32) -> Output {
        assert_eq!(self.code, Some(code), "another exit code than {code}: {self:?}");
        self
    }

    /// Asserts exit code 0.
    #[track_caller]
    pub fn ok(self) -> Output {
        self.exits(0)
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// The first line of standard output, or an empty text.
    pub fn first_line(&self) -> String {
        self.text().lines().next().unwrap_or_default().to_owned()
    }

    /// The one JSON object on standard output.
    #[track_caller]
    pub fn json(&self) -> Json {
        Json::parse(&self.text())
    }

    /// The JSON lines on standard output.
    pub fn json_lines(&self) -> Vec<Json> {
        self.text().lines().map(Json::parse).collect()
    }

    /// Whether `--json` stood among outlast's own arguments.
    fn asked_for_json(&self) -> bool {
        let own = self.args.iter().take_while(|word| *word != "--" && *word != "-c");
        own.into_iter().any(|word| word == "--json")
    }

    /// Holds whatever JSON was printed against the contract.
    ///
    /// # Panics
    /// When a rule is broken.
    pub(crate) fn checked(self) -> Output {
        if self.asked_for_json() {
            let verb = self.args.first().cloned().unwrap_or_default();
            if let Err(breach) = contract::check_printed(&verb, &self.text()) {
                panic!("{breach}\n{self:?}");
            }
        }
        self
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(to, "outlast {:?}", self.args)?;
        writeln!(to, "code {:?} signal {:?}", self.code, self.signal)?;
        writeln!(to, "--- stdout\n{}", shorten(&self.stdout))?;
        write!(to, "--- stderr\n{}", shorten(&self.stderr))
    }
}

/// A text for a person who reads a failure: its beginning and its end.
pub(crate) fn shorten(bytes: &[u8]) -> String {
    const HALF: usize = 2_000;
    if bytes.len() <= 2 * HALF {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let (head, tail) = (&bytes[..HALF], &bytes[bytes.len() - HALF..]);
    format!("{}\n… {} bytes …\n{}", String::from_utf8_lossy(head), bytes.len(), String::from_utf8_lossy(tail))
}
