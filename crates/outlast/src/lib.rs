//! Run shell commands for agents: never blocked, never lost, never left behind.
//!
//! [`Runtime`] opens a state directory; a [`Session`] owns commands and ends once; [`Command`] is the
//! handle of one. A command starts in the foreground ([`Session::run`]) and moves to the background
//! when its grace is over or its caller goes away; from then on it can be looked at, waited for, typed
//! into and stopped by its id, and its end is told exactly once to each consumer.
//!
//! Work inside this process can be a command too: [`Session::spawn_task`] gives an asynchronous closure an id, a log and an
//! end that is told, and whoever can look at, wait for and stop a command can do that with it.
//!
//! The library is asynchronous on tokio (a runtime with I/O and time enabled), every call is
//! cancel-safe unless it says otherwise, and there is no global state: it prints nothing, handles no
//! signal, and reads neither environment nor home.
//!
//! Modules are listed in reading order; a module uses only those above it.
#![forbid(unsafe_code)]

mod error;
mod config;
mod race;
mod redaction;
mod observe;
mod telemetry;
mod hub;
mod ancestry;
mod ready;
mod link;
mod watch;
mod keeper;
mod places;
mod memory;
mod temporary;
mod text_policy;
mod runtime;
mod session;
mod settle;
mod kept;
mod seal;
mod open;
mod output;
mod snapshot;
mod hide;
mod overview;
mod probe;
mod strays;
mod command;
mod final_text;
mod inspect;
mod totals;
mod ended;
mod family;
mod read;
mod follow;
mod condition;
mod quiet;
mod matching;
mod attention;
mod request;
mod stopping;
mod launch;
mod vanished;
mod finished;
mod event;
mod running;
mod admit;
mod submit;
mod ledger;
mod deliver;
mod claim;
mod receipts;
mod publish;
mod heads_up;
mod note;
mod attend;
mod turn;
mod stop;
mod task;
mod teardown;
mod reconcile;
mod bind;
mod owed;
mod retain;
mod destroy;
mod doctor;

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub use ancestry::{Ancestor, ancestors};
pub use attend::{WaitEnd, WaitOptions, WaitReport, Waited};
pub use bind::Bound;
pub use claim::Claim;
pub use command::Command;
pub use condition::Until;
pub use config::{Config, ForkKeeper};
pub use deliver::{Completion, CompletionGuard, Told};
pub use doctor::{DoctorReport, Finding};
pub use error::{Error, ErrorKind, Result};
pub use event::{Demotion, Progress, RunEvent};
pub use final_text::FinalText;
pub use finished::Finished;
pub use follow::Follower;
pub use heads_up::HeadsUp;
pub use hub::{Failures, Level, Listener, Notice};
pub use inspect::Entry;
pub use note::Note;
pub use observe::{Event, Observed, Observer, Outturn, Starting};
pub use open::{Anchor, SessionOptions};
pub use outlast_core as core;
pub use outlast_core::delivery::Via;
pub use outlast_core::origin::{Lane, Origin, Provenance, Trust};
pub use outlast_core::policy::{LiveOutput, Policy, TraceRule};
pub use outlast_core::push::{Push, Reach};
pub use outlast_core::receipt::Change;
pub use outlast_core::request::Delivery;
pub use outlast_core::tracking::Tracked;
pub use output::{Excerpt, Missing, OutputView, Piece, Stream};
pub use overview::SessionSummary;
pub use quiet::{QUIET_AFTER, Quiet, quiet_time};
pub use read::{ReadOptions, Reading};
pub use receipts::{Consumed, ReceiptLease, Receipts};
pub use reconcile::{Predecessor, ReconcileReport};
pub use request::RunRequest;
pub use retain::Retained;
pub use running::Running;
pub use runtime::Runtime;
pub use seal::Seal;
pub use session::Session;
pub use snapshot::Snapshot;
pub use stop::StopOutcome;
pub use stopping::StopOptions;
pub use submit::Outcome;
pub use task::{StopToken, Task, TaskContext, TaskInput, TaskReceipts, TaskRequest, TaskWriter, keep_panic_stacks};
pub use teardown::END_BOUND;
pub use temporary::Temporary;
pub use text_policy::TextPolicy;
pub use totals::Totals;
pub use turn::{Cancelled, Residue, Turn, TurnKind};
