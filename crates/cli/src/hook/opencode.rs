//! The form of the plugin that `outlast setup opencode` writes: opencode itself runs no programs as hooks.

use serde_json::{Value, json};

use super::form::{Form, Moment, Reply};

/// opencode, through its plugin. `session.start` is the first prompt of a conversation in this process.
pub const OPENCODE: Form = Form {
    moments: &[
        ("session.start", Moment::Start),
        ("chat.message", Moment::Prompt),
        ("tool.execute.before", Moment::BeforeTool),
        ("tool.execute.after", Moment::AfterTool),
        ("experimental.session.compacting", Moment::Compacting),
        ("session.idle", Moment::Stop),
    ],
    shells: &["bash"],
    reads_at_stop: false,
    write,
};

fn write(_event: &str, reply: &Reply) -> Value {
    match reply {
        Reply::Deny(reason) => json!({"deny": reason}),
        Reply::Tell { model: Some(text), person: None } => json!({"context": text}),
        Reply::Tell { model: None, person: Some(line) } => json!({"notice": line}),
        Reply::Tell { model, person } => json!({"context": model, "notice": person}),
    }
}
