//! The form of Gemini CLI.

use serde_json::{Value, json};

use super::form::{Form, Moment, Reply, context};

/// Gemini CLI. It has no moment after a compression; the next prompt is the first that its model reads.
pub const GEMINI: Form = Form {
    moments: &[
        ("SessionStart", Moment::Start),
        ("BeforeAgent", Moment::Prompt),
        ("BeforeTool", Moment::BeforeTool),
        ("AfterTool", Moment::AfterTool),
        ("AfterAgent", Moment::Stop),
        ("BeforeModel", Moment::Nothing),
        ("AfterModel", Moment::Nothing),
        ("BeforeToolSelection", Moment::Nothing),
        ("PreCompress", Moment::Nothing),
        ("Notification", Moment::Nothing),
        ("SessionEnd", Moment::Nothing),
    ],
    shells: &["run_shell_command"],
    reads_at_stop: false,
    write,
};

fn write(event: &str, reply: &Reply) -> Value {
    match reply {
        Reply::Deny(reason) => json!({"decision": "deny", "reason": reason}),
        Reply::Tell { model, person } => context(event, model.as_deref(), person.as_deref()),
    }
}
