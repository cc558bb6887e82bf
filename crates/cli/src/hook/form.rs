//! What a hook host says and hears, whichever it is: the moments of its conversation, and the answers to them.

use std::str::Chars;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A moment in a host's conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A conversation begins, goes on after a pause, or was just compacted: its model may have forgotten every id.
    Start,
    /// A person has written.
    Prompt,
    /// A tool is about to be used.
    BeforeTool,
    /// A tool was used.
    AfterTool,
    /// What is said now goes into the summary of the conversation.
    Compacting,
    /// The model has said its last word for now.
    Stop,
    /// Nothing is ever said at this moment.
    Nothing,
}

/// The form of one host.
pub struct Form {
    /// The names of its events. What is not among them is unknown.
    pub moments: &'static [(&'static str, Moment)],
    /// The names of its built-in shell tool.
    pub shells: &'static [&'static str],
    /// Whether its model reads what it is told at a stop.
    pub reads_at_stop: bool,
    /// Writes a reply to an event of this name.
    pub write: fn(event: &str, reply: &Reply) -> Value,
}

impl Form {
    /// The moment of an event, if the event is known.
    pub fn moment(&self, event: &str) -> Option<Moment> {
        self.moments.iter().find(|(name, _)| *name == event).map(|(_, moment)| *moment)
    }
}

/// What is replied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The tool is not used; why.
    Deny(String),
    /// News.
    Tell {
        /// For the model.
        model: Option<String>,
        /// One line for the person in front of the host.
        person: Option<String>,
    },
}

/// News in the form that Claude Code has begun and Codex and Gemini CLI have taken over.
pub fn context(event: &str, model: Option<&str>, person: Option<&str>) -> Value {
    let mut answer = Map::new();
    if let Some(text) = model {
        let told = json!({"hookEventName": event, "additionalContext": text});
        answer.insert("hookSpecificOutput".to_owned(), told);
    }
    if let Some(text) = person {
        answer.insert("systemMessage".to_owned(), json!(text));
    }
    Value::Object(answer)
}

/// What a host says of an event, as far as it matters here.
#[derive(Debug, Deserialize)]
pub struct Call {
    /// The name of the event.
    pub hook_event_name: String,
    /// The sub-agent it is about.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// This stop follows one that a hook turned into more work.
    #[serde(default)]
    pub stop_hook_active: bool,
    /// The tool.
    #[serde(default)]
    pub tool_name: Option<String>,
    #[serde(default)]
    tool_input: Option<ToolInput>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ToolInput {
    Shell { command: String },
    Other(serde::de::IgnoredAny),
}

impl Call {
    /// The line for the shell, if that is what the tool takes.
    pub fn command(&self) -> Option<&str> {
        match self.tool_input.as_ref()? {
            ToolInput::Shell { command } => Some(command),
            ToolInput::Other(_) => None,
        }
    }
}

/// Whether a shell line asks outlast, and nothing else: one call, whose words a shell takes as they are, with at most
/// one file descriptor led into another.
pub fn asks_outlast(line: &str) -> bool {
    let program = line.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    name == "outlast" && !program.contains(['\'', '"', '\\']) && is_one_call(line)
}

/// Whether nothing in a line joins, nests, expands or redirects to a file. What is unclear does.
fn is_one_call(line: &str) -> bool {
    let mut rest = line.chars();
    while let Some(one) = rest.next() {
        let goes_on = match one {
            '\'' => rest.any(|one| one == '\''),
            '"' => skip_quoted(&mut rest),
            '\\' => rest.next().is_some_and(|one| one != '\n' && one != '\r'),
            '>' => skip_descriptor(&mut rest),
            // A comment could hide a quote, and with it where the next line begins.
            ';' | '&' | '|' | '<' | '$' | '`' | '(' | ')' | '#' | '\n' | '\r' => false,
            _ => true,
        };
        if !goes_on {
            return false;
        }
    }
    true
}

/// Goes behind the second of two double quotes, between which a shell still expands.
fn skip_quoted(rest: &mut Chars<'_>) -> bool {
    while let Some(one) = rest.next() {
        match one {
            '"' => return true,
            '$' | '`' => return false,
            '\\' if rest.next().is_none() => return false,
            _ => {}
        }
    }
    false
}

/// Goes behind `&1`; whatever else follows a `>` may be a file.
fn skip_descriptor(rest: &mut Chars<'_>) -> bool {
    let text = rest.as_str();
    let word = text.split([' ', '\t']).next().unwrap_or_default();
    let number = word.strip_prefix('&').unwrap_or_default();
    *rest = text[word.len()..].chars();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_that_asks_outlast_alone_does() {
        for (line, asks) in [
            ("outlast wait w1", true),
            ("  /usr/local/bin/outlast wait --any 'w1' w2", true),
            ("outlast", true),
            ("outlast wait w1 2>&1", true),
            ("outlast wait w1 2>&1 --any >&2", true),
            ("outlast logs w1 --grep 'a|b$'", true),
            ("outlast logs w1 --grep \"a|b\" --tail 5", true),
            ("outlast send w1 \"a; b && \\$(c) \\\" \\`\"", true),
            ("outlast send w1 a\\;b", true),
            ("outlast send w1 'a\nb'", true),
            ("outlast wait w1; make", false),
            ("outlast wait w1 2>&1; make", false),
            ("outlast wait w1 2>&1;make", false),
            ("outlast wait w1 >&1file", false),
            ("outlast wait w1 &>file", false),
            ("outlast wait w1 >&file", false),
            ("outlast wait w1 2>& file", false),
            ("outlast logs w1 > file", false),
            ("outlast logs w1 >>file", false),
            ("outlast logs w1 >|file", false),
            ("outlast logs w1 | sh", false),
            ("outlast send w1 <(make)", false),
            ("outlast send w1 < file", false),
            ("outlast send w1 `make`", false),
            ("outlast send w1 \"`make`\"", false),
            ("outlast send w1 \"$(make)\"", false),
            ("outlast send w1 \"\\\\$(make)\"", false),
            ("outlast send w1 'a' $(make) 'b'", false),
            ("outlast send w1 $'a\\'b' make", false),
            ("outlast send w1 'a\\' ; make '", false),
            ("outlast send w1 \\' ; make '", false),
            ("outlast send w1 'a", false),
            ("outlast send w1 \"a", false),
            ("outlast send w1 \\", false),
            ("outlast send w1 \\\nmake", false),
            ("outlast ps # it's\nmake # '", false),
            ("\"x/outlast\" ps", false),
            ("outlast & make", false),
            ("outlast wait w1 && make", false),
            ("outlast wait $(make)", false),
            ("outlast wait w1\nmake", false),
            ("make outlast", false),
            ("outlaster", false),
            ("", false),
        ] {
            assert_eq!(asks_outlast(line), asks, "{line:?}");
        }
    }

    #[test]
    fn a_call_is_read_whatever_its_tool_takes() {
        fn read(text: &str) -> Call {
            serde_json::from_str(text).expect("a call")
        }
        let shell =
            read(r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls","x":[1]}}"#);
        assert_eq!((shell.command(), shell.tool_name.as_deref()), (Some("ls"), Some("Bash")));
        for input in ["null", "[1]", "{}", r#"{"command":["ls"]}"#, "7"] {
            let text = format!(r#"{{"hook_event_name":"X","agent_id":null,"tool_input":{input},"more":1}}"#);
            assert_eq!(read(&text).command(), None, "{input}");
        }
    }
}
