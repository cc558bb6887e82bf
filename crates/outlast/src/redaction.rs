//! The secrets that a runtime knows, and what masks them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::id::CommandId;
use outlast_core::policy::Policy;
use outlast_core::policy::credentials::is_secret;
use outlast_core::policy::redact::Redactor;
use outlast_core::request::OsText;

/// What masks secrets, where the policy asks for it. It learns from the environments of commands that are started.
pub(crate) struct Redaction {
    state: Option<Mutex<State>>,
}

#[derive(Default)]
struct State {
    values: HashSet<Vec<u8>>,
    /// Made of the values when it is needed, and again when there are more of them.
    redactor: Option<Arc<Redactor>>,
    /// Commands of which the trace has a line already.
    noted: HashSet<CommandId>,
}

impl Redaction {
    pub(crate) fn of(policy: &Policy) -> Redaction {
        let state = State { values: policy.secrets.iter().cloned().collect(), ..State::default() };
        Redaction { state: policy.redact.then(|| Mutex::new(state)) }
    }

    /// Takes the secrets out of the environment of a command.
    pub(crate) fn learn(&self, env: &[(OsText, OsText)]) {
        let Some(state) = &self.state else { return };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, value) in env.iter().filter(|(name, value)| is_secret(&name.lossy(), &value.0)) {
            if state.values.insert(value.0.clone()) {
                state.redactor = None;
            }
        }
    }

    /// What masks secrets; none where that is off.
    pub(crate) fn redactor(&self) -> Option<Arc<Redactor>> {
        let mut state = self.state.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(redactor) = &state.redactor {
            return Some(redactor.clone());
        }
        let redactor = Arc::new(Redactor::new(state.values.iter().cloned()));
        state.redactor = Some(redactor.clone());
        Some(redactor)
    }

    /// Whether this is the first time that something of this command was masked here.
    pub(crate) fn is_first(&self, id: CommandId) -> bool {
        let Some(state) = &self.state else { return false };
        state.lock().unwrap_or_else(PoisonError::into_inner).noted.insert(id)
    }
}
