//! How a command is to be stopped, by its caller or from outside.

use std::time::Duration;

use outlast_core::wire::ToSupervisor;

use crate::request::millis;

/// How to stop.
#[derive(Clone, Debug)]
pub struct StopOptions {
    /// The consumer who asks.
    pub by: String,
    /// The time between the first signal and KILL; none means the command's own.
    pub grace: Option<Duration>,
    /// The first signal in place of TERM.
    pub signal: Option<i32>,
    /// Also when callers other than the one who asks wait for the command: it is stopped for all of them.
    pub force: bool,
}

impl StopOptions {
    /// A plain stop that this consumer asks for.
    pub fn by(consumer: impl Into<String>) -> Self {
        StopOptions { by: consumer.into(), grace: None, signal: None, force: false }
    }

    /// What its supervisor is asked.
    pub(crate) fn message(&self) -> ToSupervisor {
        let StopOptions { by, grace, signal, force } = self.clone();
        ToSupervisor::Stop { by, grace_ms: grace.map(millis), signal, force }
    }
}
