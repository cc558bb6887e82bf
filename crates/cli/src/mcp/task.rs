//! Tasks (the extension `io.modelcontextprotocol/tasks`, SEP-2663): a command under its own id, out of its records, so
//! that every later server process knows it.

use std::time::Duration;

use outlast::{Command, Snapshot, StopOptions, Via};
use outlast_core::ending::End;
use outlast_core::id::CommandId;
use outlast_core::names::{display_line, shown_label};
use outlast_core::notice;
use outlast_core::record::Phase;
use outlast_core::text::excerpt::Tail;
use outlast_core::units::{format_elapsed, format_time};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus,
};

use super::delivery::{Delivery, Receipt};
use super::places::{Desk, MODEL};
use super::reply::{META_COMMAND, OUTPUT_BYTES, Reply, failure_text, fenced, last_part};
use crate::exit::Failure;
use crate::view::CommandView;
use crate::words;

/// Who stopped a command whose task was cancelled.
const BY_CANCEL: &str = "tasks_cancel";
/// How often a client may look, in milliseconds.
const POLL_MS: u64 = 1000;
/// How long a cancel waits for the stop to be over before it answers; it goes on all the same.
const CANCEL_BOUND: Duration = Duration::from_millis(250);

/// What a call answers that goes on as a task.
pub fn created(snapshot: &Snapshot) -> CreateTaskResult {
    CreateTaskResult::new(task(snapshot, TaskStatus::Working, Some(progress(snapshot))))
}

/// How a task stands. The end counts as told once the answer went out.
pub async fn get(desk: &Desk, id: &str, delivery: &Delivery) -> Result<GetTaskResult, ErrorData> {
    let command = find(desk, id).await?;
    let snapshot = command.snapshot().await.map_err(|error| internal(&error.into()))?;
    let (payload, message) = payload(&snapshot).map_err(|failure| internal(&failure))?;
    if matches!(payload, TaskPayload::Completed { .. } | TaskPayload::Failed { .. }) {
        let claim = command.session().claim(MODEL, command.id()).await.map_err(|error| internal(&error.into()))?;
        if let outlast::Claim::Ours(guard) = claim {
            delivery.add(Receipt::Completion(guard, Via::Task));
        }
    }
    let task = task(&snapshot, payload.status(), message);
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// Stops the command of a task. What is answered is that the stop was taken on, not that it is over.
pub async fn cancel(desk: &Desk, id: &str) -> Result<(), ErrorData> {
    let command = find(desk, id).await?;
    let stop = tokio::spawn(async move { command.stop(StopOptions::by(BY_CANCEL)).await.map(drop) });
    match tokio::time::timeout(CANCEL_BOUND, stop).await {
        Ok(Ok(Err(error))) => Err(internal(&error.into())),
        Ok(Err(error)) => Err(ErrorData::internal_error(format!("the stop broke off: {error}"), None)),
        // It is under way, and goes on without anybody waiting.
        Ok(Ok(Ok(()))) | Err(_) => Ok(()),
    }
}

/// Whether the task is known.
pub async fn known(desk: &Desk, id: &str) -> Result<(), ErrorData> {
    find(desk, id).await.map(drop)
}

async fn find(desk: &Desk, id: &str) -> Result<Command, ErrorData> {
    let unknown = || ErrorData::invalid_params(format!("unknown task: {}", display_line(id)), None);
    let id: CommandId = id.parse().map_err(|_| unknown())?;
    let runtime = desk.runtime().map_err(|error| internal(&error.into()))?;
    match runtime.find_command(&id).await {
        Ok(session) => session.get(&id).await.map_err(|error| internal(&error.into()))?.ok_or_else(unknown),
        Err(outlast::Error::UnknownAnywhere { .. }) => Err(unknown()),
        Err(error) => Err(internal(&error.into())),
    }
}

fn internal(failure: &Failure) -> ErrorData {
    ErrorData::internal_error(failure_text(failure), None)
}

fn task(snapshot: &Snapshot, status: TaskStatus, message: Option<String>) -> Task {
    let changed = match (snapshot.ended_at_ms, snapshot.quiet_ms) {
        (Some(ended), _) => ended,
        (None, Some(quiet)) => {
            let now = snapshot.started_at_ms.saturating_add(snapshot.duration_ms);
            now.saturating_sub(quiet).max(snapshot.demoted_at_ms.unwrap_or(snapshot.started_at_ms))
        }
        (None, None) => snapshot.demoted_at_ms.unwrap_or(snapshot.started_at_ms),
    };
    let task = Task::new(snapshot.id.to_string(), status, format_time(snapshot.started_at_ms), format_time(changed))
        .with_poll_interval_ms(POLL_MS);
    match message {
        Some(message) => task.with_status_message(message),
        None => task,
    }
}

fn progress(snapshot: &Snapshot) -> String {
    let phase = if snapshot.phase == Phase::Stopping { "stopping" } else { "running" };
    format!("{phase}, {} bytes of output so far", snapshot.output.bytes)
}

/// The state of the task, and its message.
fn payload(snapshot: &Snapshot) -> Result<(TaskPayload, Option<String>), Failure> {
    if let Some(damage) = &snapshot.damaged {
        let error = serde_json::json!({"code": -32603, "message": format!("its records are damaged: {damage}")});
        return Ok((TaskPayload::Failed { error: rmcp::model::object(error) }, None));
    }
    let Some(end) = &snapshot.end else { return Ok((TaskPayload::Working, Some(progress(snapshot)))) };
    if matches!(end, End::Stopped { by, .. } if by == BY_CANCEL) {
        // Cancelled is said once nothing is left of it.
        if snapshot.output.capturing && !snapshot.survivors.is_empty() {
            return Ok((TaskPayload::Working, Some("stopping".to_owned())));
        }
        let message = format!(
            "{}, {} bytes of output; `read` {} shows them",
            words::end_words(end),
            snapshot.output.bytes,
            snapshot.id
        );
        return Ok((TaskPayload::Cancelled, Some(message)));
    }
    Ok((TaskPayload::Completed { result: result(snapshot, end)? }, None))
}

/// The result of a task stands alone: its reader may have nothing else.
fn result(snapshot: &Snapshot, end: &End) -> Result<JsonObject, Failure> {
    let reply = match end {
        // A client may show an error on one line only.
        End::Lost => Reply::error(format!(
            "lost: nobody knows how {} ended or whether it finished; `read` {} shows what it printed",
            snapshot.id, snapshot.id
        )),
        End::Interrupted => Reply::error(format!(
            "interrupted: the process that ran {} ended before it was done; `read` {} shows what it printed",
            snapshot.id, snapshot.id
        )),
        _ => Reply::text(text(snapshot, end)?),
    };
    let result: CallToolResult = reply.with(META_COMMAND, &CommandView::whole(snapshot))?.result();
    let failed = |error: serde_json::Error| Failure::System("cannot write JSON".to_owned(), error.into());
    match serde_json::to_value(result).map_err(failed)? {
        serde_json::Value::Object(object) => Ok(object),
        _ => Ok(JsonObject::new()),
    }
}

fn text(snapshot: &Snapshot, end: &End) -> Result<String, Failure> {
    let label = snapshot.label.as_ref().map(|label| format!(" ({})", shown_label(label))).unwrap_or_default();
    let code = snapshot.exit_code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
    let status = if snapshot.ok == Some(true) { "ok" } else { "error" };
    let time = format_elapsed(Duration::from_millis(snapshot.duration_ms));
    let end = words::end_words(end);
    let mut text = format!("[{}{label}] ended: {end}, {code}, {status}, after {time}\n", snapshot.id);
    if let Some(limit) = &snapshot.limit {
        text.push_str(&format!("{}; the output is partial\n", display_line(limit)));
    }
    text.extend(
        words::survivors(&words::short_name(snapshot), &snapshot.survivors, words::Reader::Tools)
            .map(|line| line + "\n"),
    );
    text.push_str(&snapshot.exit_code.and_then(notice::exit_line).unwrap_or_default());
    let tail = Tail::of(snapshot.output.bytes, &snapshot.output.tail, OUTPUT_BYTES);
    if tail.truncated {
        text.push_str(&format!(
            "output: {} bytes, the last {} shown; `read` {} shows more\n",
            snapshot.output.bytes,
            tail.bytes.len(),
            snapshot.id
        ));
    }
    text.push_str(&fenced(last_part(&tail.text(), 2 * OUTPUT_BYTES))?);
    Ok(text)
}
