//! Calls of the binary: what each is made for, its words, and what it told.

use outlast_testkit::{Front, Output};
use serde_json::Value;

use crate::plan::{Act, CONSUMERS, Mode};

/// What a call was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// To start the command of this number.
    Run(usize),
    /// To stop a command, or all.
    Stop(Option<String>),
    /// To wait for a command, on behalf of a consumer.
    Wait(String, &'static str),
    /// To be told what is new, on behalf of a consumer.
    Inbox(&'static str),
    /// To write to a command.
    Send,
}

/// A call that was made and has not been waited for.
pub struct Call {
    /// What it was made for.
    pub what: What,
    /// The front end.
    pub front: Front,
    /// Whether it was killed.
    pub killed: bool,
    /// Why it may fail, if it may.
    pub excuse: Option<&'static str>,
}

/// A call that is over.
#[derive(Debug)]
pub struct Told {
    /// What it was made for.
    pub what: What,
    /// What it printed, and how it ended.
    pub output: Output,
    /// Whether it was killed.
    pub killed: bool,
    /// Why it may have failed, if it may: what its surroundings lacked.
    pub excuse: Option<&'static str>,
}

impl Call {
    /// Waits for its end.
    pub fn told(self) -> Told {
        let output = if self.killed || self.excuse.is_some() { self.front.wait_killed() } else { self.front.wait() };
        Told { what: self.what, output, killed: self.killed, excuse: self.excuse }
    }
}

impl Told {
    /// The object that it printed, if it came to its end.
    pub fn object(&self) -> Option<Value> {
        serde_json::from_slice(&self.output.stdout).ok()
    }

    /// Whether a `run` has handed out an id, which is no telling of an end, whatever has become of it meanwhile.
    pub fn hands_out(&self) -> bool {
        let background = self.output.args.iter().any(|word| word == "-b");
        self.output.code == Some(75) || background && self.output.code == Some(0)
    }
}

/// The words of a start.
pub fn words(act: &Act) -> Vec<String> {
    let mut words: Vec<String> =
        ["run", "--json", "--consumer", CONSUMERS[0], "--label", &act.label].map(str::to_owned).to_vec();
    words.extend(act.shape.options.iter().map(|word| (*word).to_owned()));
    match act.mode {
        Mode::Background => words.push("-b".to_owned()),
        Mode::Grace(time) => words.extend(["--grace".to_owned(), format!("{time}ms")]),
        Mode::Foreground => words.extend(["--grace".to_owned(), "60s".to_owned()]),
    }
    if act.callers > 1 {
        words.push("--join".to_owned());
    }
    words.extend(["-c".to_owned(), act.shape.line(&act.label)]);
    words
}

/// A word as a shell takes it.
pub fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
