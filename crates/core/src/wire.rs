//! What front ends, keeper and supervisors say to each other over their sockets.
//!
//! Each message is one JSON frame; bytes of output and input travel in frames of their own. A front
//! end asks one question for each connection, so replies need no numbers.

use serde::{Deserialize, Serialize};

use crate::id::{Alias, CommandId};
use crate::joining::{JoinKey, Joinable};
use crate::record::{ClosedRecord, ExitRecord, OutputState, Phase, ProcessMark, Survivor};
use crate::request::{OsText, Request};

/// The name under which the binary is started to become a keeper: `argv[0]`, told before arguments are
/// parsed. It is the keeper's own name too (proc(5), comm), however it came to be.
pub const KEEPER_NAME: &str = "outlast-keeper";
/// The name of a supervisor (comm).
pub const SUPERVISOR_NAME: &str = "outlast-super";

/// A start that an identical command may take the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joining {
    /// What makes it identical to another.
    pub key: JoinKey,
    /// Whether it is a background start, which does not join what has ended.
    pub background: bool,
}

/// A front end to the keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum ToKeeper {
    /// This connection is the session's owner (it holds `owner.lock`); its closing starts the linger.
    Own {
        /// The owner's process.
        mark: ProcessMark,
    },
    /// Start a command: the channel to its supervisor rides on this frame. The keeper answers nothing;
    /// the supervisor speaks on the channel. `Refused` comes back on the channel too.
    Start {
        /// The command, so that a refusal can name what runs.
        id: CommandId,
        /// Asked to join; none for a command of its own, which nobody joins.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        join: Option<Joining>,
    },
    /// Pass the channel that rides on this frame on to the supervisor of a command, for who looks for one that has
    /// no door. Nothing is answered here; where nobody watches that command the channel is closed.
    Reach {
        /// The command.
        id: CommandId,
    },
    /// Take a task of the owner into charge, by its door. Answered by nothing; it is looked for there.
    Task {
        /// The command.
        id: CommandId,
    },
    /// The owner is about to be replaced: refuse every start until a new one is there, or this connection closes.
    /// Answered by `Sealed`.
    Seal,
    /// Tell what became of a command whose supervisor vanished, once its record is finished.
    Fate {
        /// The command.
        id: CommandId,
    },
    /// End the session: stop everything but detached commands, close it, answer `Closed`.
    End {
        /// Who asks.
        by: String,
        /// Milliseconds to wait for verified ends; 0 answers at once.
        bound_ms: u64,
        /// Detached commands are ended too.
        detached: bool,
    },
    /// Who are you, and what do you keep?
    Ping,
}

/// The keeper to a front end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum FromKeeper {
    /// Another keeper holds the session: connect to its door.
    Busy,
    /// The keeper could not open the session's directory or its door.
    Failed {
        /// What happened, to which path, and what to do.
        reason: String,
    },
    /// The answer to `Own`.
    Owned {
        /// The keeper, so that its owner can see it go.
        keeper: ProcessMark,
    },
    /// The answer to `Seal`.
    Sealed,
    /// The answer to `Fate`: its record is finished now, or the keeper never knew it.
    Fate {
        /// The command.
        id: CommandId,
        /// Whether the keeper knew it.
        known: bool,
        /// Whether it gave it to a supervisor that died before it started anything: nothing of it ever ran.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        never_begun: bool,
        /// The end, for a command whose records could not be made.
        exit: Option<Box<ExitRecord>>,
    },
    /// The answer to `End`.
    Closed {
        /// The report.
        report: Box<ClosedRecord>,
    },
    /// The answer to `Ping`.
    Pong {
        /// The keeper.
        keeper: ProcessMark,
        /// Supervisors with a command, spare not counted.
        keeping: u32,
        /// Whether the session is ending.
        ending: bool,
    },
}

/// A front end (or the keeper) to a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum ToSupervisor {
    /// Run this, or wait for the identical command that runs. Only on the channel that the keeper handed over.
    Start {
        /// What to run.
        request: Box<Request>,
    },
    /// Move it to the background now.
    Demote,
    /// The end was shown to the caller: forget it if it was never demoted. Answered by `Heard`.
    Told,
    /// Stop the whole tree. Answered by `Stopped` when it is verified or the bound is over, or by `NotStopped`.
    Stop {
        /// The consumer who asks, or a `BY_` word.
        by: String,
        /// Milliseconds between the first signal and KILL; none means the request's own.
        grace_ms: Option<u64>,
        /// The first signal in place of TERM.
        signal: Option<i32>,
        /// Also when callers other than the one who asks wait for the command.
        #[serde(default)]
        force: bool,
    },
    /// Send one signal to the command's group; not a stop.
    Signal {
        /// Its number.
        signal: i32,
    },
    /// The bytes of the input frames sent on this connection are all here: say whether they were taken.
    InputDone {
        /// Close the command's standard input once they are written.
        close: bool,
    },
    /// The command says that it has changed these paths. Answered by `Delivered`.
    Receipt {
        /// The command that says so.
        id: CommandId,
        /// Absolute paths.
        paths: Vec<OsText>,
    },
    /// Tell what is known now.
    Status,
    /// Tell the end, the close of the capture, and (with `growth`) that output came.
    Subscribe {
        /// Also tell growth, one `Grew` for each `More`.
        growth: bool,
    },
    /// The last `Grew` was read up to this many bytes; the next may be sent.
    More {
        /// Bytes of output read so far.
        seen: u64,
    },
    /// This connection is the session's (new) keeper.
    Keep,
}

/// Why a start was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The cap on running commands is reached.
    Cap,
    /// The session is ending or has ended.
    Ending,
    /// The owner of the session is being replaced.
    Sealed,
    /// Records cannot be made and the start needs them.
    NoRecords,
    /// The machine refused: no descriptor, no process, no memory.
    Machine,
    /// The request makes no sense.
    Invalid,
}

/// Why a command was demoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DemotedBy {
    /// Its grace was over.
    Grace,
    /// It was started in the background.
    Background,
    /// Its caller asked.
    Asked,
    /// Its caller went away.
    CallerGone,
}

/// What is known of a command while its supervisor lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveStatus {
    /// The command.
    pub id: CommandId,
    /// Its number; none before materialisation.
    pub alias: Option<Alias>,
    /// Where it is.
    pub phase: Phase,
    /// The leader while it lives.
    pub leader: Option<ProcessMark>,
    /// The supervisor.
    pub supervisor: ProcessMark,
    /// Milliseconds from the start to now, or to the reap.
    pub elapsed_ms: u64,
    /// Output so far. The tail follows in a bytes frame.
    pub output: OutputState,
    /// Descendants alive after the leader was reaped.
    pub survivors: Vec<Survivor>,
    /// Record errors so far.
    pub errors: Vec<String>,
    /// Who asked for the stop that is under way.
    pub stopping_by: Option<String>,
    /// Unix time of the demotion in milliseconds.
    pub demoted_at_ms: Option<u64>,
    /// Whether its standard input is open.
    pub stdin_open: bool,
    /// Milliseconds since the last byte of output.
    pub quiet_ms: u64,
    /// The end, once the phase is ended.
    #[serde(default)]
    pub exit: Option<Box<ExitRecord>>,
}

/// What a stop did, verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReport {
    /// Rounds of signals sent to the tree.
    pub signals: u32,
    /// Whether the command had ended before this stop.
    pub already_ended: bool,
    /// Whether nothing of the tree is left.
    pub verified: bool,
    /// Survivors of an ended command that this stop ended.
    pub ended_survivors: Vec<Survivor>,
    /// What is still alive.
    pub alive: Vec<Survivor>,
}

/// A supervisor to a front end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum FromSupervisor {
    /// The caller's `Told` was taken, and the keeper knows: the end will not be told again.
    Heard,
    /// The request was read whole. Before this nothing was started and the start may be tried again.
    Accepted {
        /// The supervisor.
        supervisor: ProcessMark,
        /// The command that runs already and that this start joined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        joined: Option<CommandId>,
        /// Which command of its key it is, counted from 1; none where joining was not asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        generation: Option<u32>,
    },
    /// The start was refused; nothing runs.
    Refused {
        /// What kind of refusal.
        refusal: Refusal,
        /// What happened and what to do.
        reason: String,
        /// What runs, for `Cap`.
        running: Vec<CommandId>,
    },
    /// The leader runs. Its pidfd rides on this frame.
    Started {
        /// The leader.
        leader: ProcessMark,
        /// Unix time in milliseconds.
        at_ms: u64,
    },
    /// So many bytes of the output are kept nowhere; what follows came after them.
    Missing {
        /// Of standard output, or of both where they share one pipe.
        out: u64,
        /// Of standard error.
        err: u64,
    },
    /// Records exist from now on.
    Materialised {
        /// Its number.
        alias: Alias,
        /// The output so far, with the place where it starts in the log.
        output: OutputState,
    },
    /// It runs in the background from now on.
    Demoted {
        /// Its number.
        alias: Alias,
        /// Unix time in milliseconds.
        at_ms: u64,
        /// Why.
        by: DemotedBy,
        /// Record errors so far.
        errors: Vec<String>,
    },
    /// It could not be demoted because records cannot be made; it goes on in the foreground.
    NotDemoted {
        /// What happened and to which path.
        reason: String,
    },
    /// Output came, up to this many bytes in all. No further one before `More`.
    Grew {
        /// The output so far.
        output: OutputState,
    },
    /// What the command said it has changed, for a caller to whom the end of a command without records is told
    /// next; nothing of this kind comes where it said nothing.
    Changed {
        /// Absolute paths.
        paths: Vec<OsText>,
    },
    /// It ended. For a command without records the held output came before, in bytes frames.
    Ended {
        /// Everything about the end.
        exit: Box<ExitRecord>,
        /// Whether it has records.
        materialised: bool,
    },
    /// Nothing more will be captured.
    CaptureClosed {
        /// The output in its final state.
        output: OutputState,
    },
    /// The answer to `Status`.
    Status(Box<LiveStatus>),
    /// The answer to `Stop`.
    Stopped(StopReport),
    /// The other answer to `Stop`: nothing was done, because others wait for the command.
    NotStopped {
        /// How many, without the one who asks.
        others: u32,
    },
    /// The answer to `Signal`, `Receipt` and `InputDone`. One to `InputDone` may come before the question, when the
    /// command ended right after it read.
    Delivered {
        /// Why it was not delivered, if so.
        refused: Option<String>,
    },
    /// The answer to `Demote` after the end, and to nonsense.
    Note {
        /// What there is to say.
        text: String,
    },
}

/// A start that is handed to the supervisor of an identical command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinOffer {
    /// The id that it has if it is started after all.
    pub id: CommandId,
    /// What it asked for.
    pub join: Joining,
    /// The command that it may join.
    pub with: CommandId,
}

/// A supervisor to its keeper, on their private socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "snake_case")]
pub enum ToOwnKeeper {
    /// A leader is about to be started, and is not before this was sent whole. What the keeper needs to finish the
    /// record should this supervisor vanish.
    Begun {
        /// The exit record as it would be if nothing more came to be known.
        draft: Box<ExitRecord>,
    },
    /// Records exist, or the command was demoted: the new draft.
    Changed {
        /// The exit record as it would be now.
        draft: Box<ExitRecord>,
        /// Whether it has records.
        materialised: bool,
    },
    /// The end is recorded, or is about to be told inline; survivors may live on.
    Recorded {
        /// The end, where it is nowhere on disk.
        exit: Option<Box<ExitRecord>>,
    },
    /// The caller has shown the end: nothing of it is left to be told.
    Told,
    /// The command is over and forgotten: this supervisor can take another.
    Spare,
    /// The start was not joined: the command is over, or about to be. Its channel rides on this frame.
    NotJoined(JoinOffer),
}

/// The keeper to one of its supervisors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum FromOwnKeeper {
    /// Serve the channel that rides on this frame.
    Assign {
        /// By what it can be joined; none where nobody may.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        joinable: Option<Joinable>,
    },
    /// Take the channel that rides on this frame as a connection at the door.
    Meet,
    /// Take the channel that rides on this frame as another caller of the command, or answer `NotJoined`.
    Join(JoinOffer),
    /// Stop the command for this reason: a `BY_` word or a consumer.
    Stop {
        /// Who asks.
        by: String,
        /// End it although it is detached.
        detached: bool,
    },
    /// The resident owner changed: watch this process should the keeper vanish.
    Owner {
        /// The owner's process; none where there is none.
        mark: Option<ProcessMark>,
    },
    /// You are not needed any more.
    Quit,
}
