//! The form of Claude Code, which Codex has taken over but for what a model reads at a stop.

use serde_json::{Value, json};

use super::form::{Form, Moment, Reply, context};

const MOMENTS: [(&str, Moment); 14] = [
    ("SessionStart", Moment::Start),
    ("UserPromptSubmit", Moment::Prompt),
    ("PreToolUse", Moment::BeforeTool),
    ("PostToolUse", Moment::AfterTool),
    ("PostToolUseFailure", Moment::AfterTool),
    ("PostToolBatch", Moment::AfterTool),
    ("Stop", Moment::Stop),
    ("PreCompact", Moment::Nothing),
    ("PostCompact", Moment::Nothing),
    ("SubagentStart", Moment::Nothing),
    ("SubagentStop", Moment::Nothing),
    ("Interrupt", Moment::Nothing),
    ("Notification", Moment::Nothing),
    ("SessionEnd", Moment::Nothing),
];

/// Claude Code. What it is told at a stop its model reads, and goes on for.
pub const CLAUDE: Form = Form { moments: &MOMENTS, shells: &["Bash"], reads_at_stop: true, write };

/// Codex. Its shell tool is called `Bash` in front of hooks.
pub const CODEX: Form = Form { moments: &MOMENTS, shells: &["Bash"], reads_at_stop: false, write };

fn write(event: &str, reply: &Reply) -> Value {
    match reply {
        Reply::Deny(reason) => json!({"hookSpecificOutput": {
            "hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": reason,
        }}),
        Reply::Tell { model, person } => context(event, model.as_deref(), person.as_deref()),
    }
}
