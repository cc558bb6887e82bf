//! What a call answers: one block of text for the model, and the JSON object for programs beside it.

use outlast_core::text::fence::fence;
use rmcp::model::{CallToolResult, ContentBlock, CreateTaskResult, MetaObject};
use serde::Serialize;

use crate::exit::Failure;

/// Bytes of output that a reply shows unless more is asked for: with what stands around it less than 8 KiB, which every
/// known client passes on whole.
pub const OUTPUT_BYTES: usize = 7168;

/// The longest text of an error, in bytes.
const ERROR_BYTES: usize = 2000;

/// Said in the place of an output that is empty.
const NO_OUTPUT: &str = "(no output)\n";

/// The key of `_meta` under which one command stands, and several.
pub const META_COMMAND: &str = "outlast/command";
/// See [`META_COMMAND`].
pub const META_LIST: &str = "outlast/list";

/// How a call came out.
pub enum Answer {
    /// With a text.
    Reply(Reply),
    /// It goes on as a task.
    Task(Box<CreateTaskResult>),
    /// Its client has cancelled it: nobody is answered.
    Cancelled,
}

/// One block of text.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The text. Its first line is the fact that matters.
    pub text: String,
    /// Whether the tool could not do what was asked. How a command ended is no error.
    pub is_error: bool,
    meta: MetaObject,
}

impl Reply {
    /// A text.
    pub fn text(text: impl Into<String>) -> Reply {
        Reply { text: text.into(), ..Reply::default() }
    }

    /// What could not be done, and why.
    pub fn error(text: impl Into<String>) -> Reply {
        let mut text = text.into();
        // What was asked for may stand in it, whatever its length.
        if text.len() > ERROR_BYTES {
            text.truncate(text.floor_char_boundary(ERROR_BYTES));
            text.push_str("…\n");
        }
        Reply { text, is_error: true, ..Reply::default() }
    }

    /// Adds an object for programs.
    pub fn with(mut self, key: &str, view: &impl Serialize) -> Result<Reply, Failure> {
        let failed = |error: serde_json::Error| Failure::System("cannot write JSON".to_owned(), error.into());
        self.meta.0.insert(key.to_owned(), serde_json::to_value(view).map_err(failed)?);
        Ok(self)
    }

    /// As the protocol has it: text only, because every client shows its model another half of the rest.
    pub fn result(self) -> CallToolResult {
        let content = vec![ContentBlock::text(self.text)];
        let result = if self.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        if self.meta.0.is_empty() { result } else { result.with_meta(Some(self.meta)) }
    }
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Answer {
        Answer::Reply(reply)
    }
}

/// The output of a command inside a fence that it cannot close.
pub fn fenced(output: &str) -> Result<String, Failure> {
    if output.trim().is_empty() {
        return Ok(NO_OUTPUT.to_owned());
    }
    loop {
        let mut bytes = [0_u8; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|errno| Failure::System("cannot get random bytes".to_owned(), errno.into()))?;
        let delimiter: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        if let Ok(text) = fence("output", &delimiter, output) {
            return Ok(text);
        }
    }
}

/// Cuts text that grew when it was made readable down to so many bytes, its beginning first.
pub fn last_part(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let start = text.ceil_char_boundary(text.len() - most);
    &text[start..]
}

/// What a model is told of a call that failed.
pub fn failure_text(failure: &Failure) -> String {
    match failure {
        Failure::Usage(text) | Failure::Refused(text) | Failure::Unknown(text) => text.clone(),
        Failure::Runtime(outlast::Error::Unknown { given, .. }) => {
            let shown = outlast_core::names::shorten(given, 48);
            format!("unknown id: {shown}; the tool `list` with all=true shows the commands of this session")
        }
        Failure::Runtime(outlast::Error::OthersWait { id, others }) => {
            format!("{others} others wait for {id}, so it was not stopped; `force` stops it for all of them")
        }
        Failure::Runtime(_) | Failure::System(..) => failure.message().unwrap_or_else(|| "it failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: R11
    #[test]
    fn r11_each_reply_has_a_fence_of_its_own() {
        let one = fenced("hello").expect("a fence");
        let two = fenced(&one).expect("a fence");
        let opening = |text: &str| text.lines().next().map(str::to_owned);
        assert_ne!(opening(&one), opening(&two));
        assert!(two.contains(&one) && two.contains("untrusted data"));
        assert_eq!(fenced(" \n").expect("nothing to fence"), NO_OUTPUT);
    }

    #[test]
    fn a_cut_keeps_the_end_and_whole_characters() {
        assert_eq!(last_part("abc", 3), "abc");
        assert_eq!(last_part("a你c", 4), "你c");
        assert_eq!(last_part("a你c", 3), "c");
    }
}
