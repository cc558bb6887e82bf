//! Tasks that outlast never has: such as fail, and such as ask. Every other task of the fixture is a real command.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, ContentBlock, CreateTaskResult, DetailedTask, GetTaskResult, InputRequests, InputResponses, Task,
    TaskPayload, TaskStatus, object,
};
use serde_json::{Value, json};

use crate::asks;

/// How long a job works.
const WORK: Duration = Duration::from_secs(1);
const BEGAN: &str = "2026-01-01T00:00:00Z";

/// The jobs of a server. Clones are the same.
#[derive(Clone, Default)]
pub struct Jobs(Arc<Mutex<HashMap<String, Job>>>);

struct Job {
    began: Instant,
    cancelled: bool,
    open: InputRequests,
    end: TaskPayload,
}

impl Jobs {
    /// Begins a job of this name, if there is one.
    pub fn begin(&self, name: &str, arguments: &Value) -> Option<Result<CreateTaskResult, ErrorData>> {
        let question = |key: &str| asks::form(key, "Go on?", "confirm", "boolean");
        let done = |text: String| TaskPayload::Completed { result: result(text, false) };
        let (questions, end) = match name {
            "failing_job" => (json!({}), TaskPayload::Completed { result: result("it failed".to_owned(), true) }),
            "protocol_error_job" => {
                let error = object(json!({"code": -32603, "message": "the job broke"}));
                (json!({}), TaskPayload::Failed { error })
            }
            "confirm_delete" => (question("confirm"), done(format!("deleted {}", arguments["filename"]))),
            "multi_input" => {
                let mut both = question("first");
                both["second"] = question("second")["second"].clone();
                (both, done("both are answered".to_owned()))
            }
            _ => return None,
        };
        Some(asks::typed(questions).map(|open| self.add(Job { began: Instant::now(), cancelled: false, open, end })))
    }

    fn add(&self, job: Job) -> CreateTaskResult {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = format!("job_{}", jobs.len());
        jobs.insert(id.clone(), job);
        CreateTaskResult::new(task(&id, TaskStatus::Working))
    }

    /// How a job stands; none where it is no job of these.
    pub fn get(&self, id: &str) -> Option<GetTaskResult> {
        self.with(id, |job| {
            let payload = if job.cancelled {
                TaskPayload::Cancelled
            } else if !job.open.is_empty() {
                TaskPayload::InputRequired { input_requests: job.open.clone() }
            } else if job.began.elapsed() < WORK {
                TaskPayload::Working
            } else {
                job.end.clone()
            };
            GetTaskResult::new(DetailedTask::new(task(id, payload.status()), payload))
        })
    }

    /// Takes answers; whether it is a job of these.
    pub fn update(&self, id: &str, answers: &InputResponses) -> bool {
        self.with(id, |job| job.open.retain(|key, _| !answers.contains_key(key))).is_some()
    }

    /// Cancels a job that has not ended; whether it is one of these.
    pub fn cancel(&self, id: &str) -> bool {
        self.with(id, |job| job.cancelled |= !job.open.is_empty() || job.began.elapsed() < WORK).is_some()
    }

    fn with<T>(&self, id: &str, act: impl FnOnce(&mut Job) -> T) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(id).map(act)
    }
}

fn task(id: &str, status: TaskStatus) -> Task {
    Task::new(id, status, BEGAN, BEGAN).with_poll_interval_ms(100)
}

fn result(text: String, is_error: bool) -> rmcp::model::JsonObject {
    let content = vec![ContentBlock::text(text)];
    let result = if is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    serde_json::to_value(result).ok().and_then(|value| value.as_object().cloned()).unwrap_or_default()
}
