//! What a client is told of the tools: names, descriptions, schemas, hints. All of it is constant.

use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::json;

use super::arguments::{
    ListArguments, ReadArguments, RunArguments, SendArguments, StopArguments, WaitArguments, schema,
};

/// One of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Starts a command.
    Run,
    /// Waits for commands.
    Wait,
    /// Reads the output of one.
    Read,
    /// Lists them.
    List,
    /// Stops them.
    Stop,
    /// Types into one, or signals it.
    Send,
}

/// All tools, in the order in which they are listed.
const ALL: [Name; 6] = [Name::Run, Name::Wait, Name::Read, Name::List, Name::Stop, Name::Send];

/// What Claude Code may show of the result of a read, in characters; more than the longest.
const READ_CHARACTERS: u32 = 100_000;

/// What a server says of itself; clients put it into the prompt of their model, most of them.
pub const INSTRUCTIONS: &str = "\
Run shell commands with the `run` tool of outlast: builds, tests, servers and anything that may take long. It returns \
the result, or an id when the command goes on in the background. Use `wait`, `read`, `send` and `stop` with that id. \
Never use `&`, `nohup`, `sleep` loops or `pkill`. \
The end of a command in the background is told with the next reply of any of these tools; `outlast wait ID`, run in a \
background shell of your own that wakes you, tells it at once.";

impl Name {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Name::Run => "run",
            Name::Wait => "wait",
            Name::Read => "read",
            Name::List => "list",
            Name::Stop => "stop",
            Name::Send => "send",
        }
    }

    /// The tool of this name.
    pub fn of(word: &str) -> Option<Name> {
        ALL.into_iter().find(|name| name.word() == word)
    }

    /// Whether it is of use only where a command can be in the background.
    pub fn is_follow_up(self) -> bool {
        self != Name::Run
    }

    fn title(self) -> &'static str {
        match self {
            Name::Run => "Run a command",
            Name::Wait => "Wait for commands",
            Name::Read => "Read output",
            Name::List => "List commands",
            Name::Stop => "Stop commands",
            Name::Send => "Send input or a signal",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Name::Run => {
                "Runs a shell command and returns its output and exit code. A command that is not done when its grace is \
                 over goes on in the background, and the reply has its id (wrk_…), which stays valid as long as the \
                 session; use `wait`, `read`, `send` and `stop` with it. A non-zero exit code is a result, not an error. \
                 Do not write `&`, `nohup` or `sleep` into the command to get it into the background or to wait: use \
                 `background` and `wait`. Its standard input is empty unless `stdin` is set."
            }
            Name::Wait => {
                "Waits until commands end, print a line or fall silent, and returns the moment that happens, with their \
                 output. Use this in place of `sleep` and of reading again and again. A wait that is over before the \
                 command changes nothing: wait again."
            }
            Name::Read => {
                "Shows how a command stands and its output: by default the end of it, bounded; tail, head, offset and grep \
                 choose another part. Works while it runs, after its end, and for ids of an earlier session."
            }
            Name::List => "Lists the commands of this session with their ids and states: those that run, or all.",
            Name::Stop => {
                "Stops commands with everything they started: TERM, then KILL, and returns when nothing is left of them. \
                 Use this in place of `kill` and `pkill`."
            }
            Name::Send => {
                "Types text into a command that was started with `stdin`, closes its input, or sends it a signal."
            }
        }
    }

    fn hints(self) -> ToolAnnotations {
        let hints = ToolAnnotations::with_title(self.title());
        match self {
            Name::Run => hints.read_only(false).destructive(true).idempotent(false).open_world(true),
            Name::Wait | Name::Read | Name::List => {
                hints.read_only(true).destructive(false).idempotent(true).open_world(false)
            }
            Name::Stop => hints.read_only(false).destructive(true).idempotent(true).open_world(false),
            Name::Send => hints.read_only(false).destructive(true).idempotent(false).open_world(true),
        }
    }

    fn schema(self) -> JsonObject {
        match self {
            Name::Run => schema::<RunArguments>(),
            Name::Wait => schema::<WaitArguments>(),
            Name::Read => schema::<ReadArguments>(),
            Name::List => schema::<ListArguments>(),
            Name::Stop => schema::<StopArguments>(),
            Name::Send => schema::<SendArguments>(),
        }
    }

    /// The tool as clients list it.
    pub fn tool(self) -> Tool {
        // Without it Claude Code hides the tools of a server behind its search.
        let mut meta = json!({"anthropic/alwaysLoad": true});
        if self == Name::Read {
            meta["anthropic/maxResultSizeChars"] = READ_CHARACTERS.into();
        }
        Tool::new(self.word(), self.description(), Arc::new(self.schema()))
            .with_title(self.title())
            .with_annotations(self.hints())
            .with_meta(MetaObject(rmcp::model::object(meta)))
    }
}

/// The tools that are offered, `follow_ups` where a command can be in the background.
pub fn offered(follow_ups: bool) -> Vec<Tool> {
    ALL.into_iter().filter(|name| follow_ups || !name.is_follow_up()).map(Name::tool).collect()
}
