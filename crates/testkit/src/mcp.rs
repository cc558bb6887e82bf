//! A small MCP client over standard input and output, for both protocol generations. What it reads is held against the
//! contract: JSON-RPC and nothing else on standard output, one text block in a result, valid objects in its `_meta`.

use serde_json::{Value, json};

use crate::contract;
use crate::front::Front;
use crate::json::Json;
use crate::output::Output;
use crate::world::World;

/// A protocol generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28: every request says who makes it.
    Modern,
    /// 2025-11-25: one `initialize`.
    Legacy,
}

/// Both of them, for tests that hold in each.
pub const ERAS: [Era; 2] = [Era::Modern, Era::Legacy];

/// A client and the server that it has started. Dropping it kills the server.
pub struct Client {
    front: Front,
    era: Era,
    last: u64,
    /// The name that it gives itself.
    pub name: String,
    /// Whether it declares the tasks extension.
    pub tasks: bool,
    /// Whether it listens to progress, under the number of the request.
    pub progress: bool,
    /// More entries of the `_meta` of its calls.
    pub meta: Value,
}

/// The result of a tool call.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// Whether it is an error.
    pub is_error: bool,
    /// The whole result.
    pub result: Json,
}

impl World {
    /// Starts `outlast mcp` with these options and shakes hands.
    #[track_caller]
    pub fn mcp(&self, era: Era, options: &[&str]) -> Client {
        let words = [&["mcp"], options].concat();
        Client::over(self.call(&words).without("OUTLAST_SESSION").open_input().spawn(), era, "a-client")
    }
}

impl Client {
    /// Speaks with a server that was started with its input open.
    #[track_caller]
    pub fn over(front: Front, era: Era, name: &str) -> Client {
        let name = name.to_owned();
        let mut client = Client { front, era, last: 0, name, tasks: false, progress: false, meta: json!({}) };
        if era == Era::Legacy {
            let info = json!({"name": client.name, "version": "0"});
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
            client.ask("initialize", hello);
            client.notify("notifications/initialized", json!({}));
        }
        client
    }

    /// The process id of the server.
    pub fn pid(&self) -> i32 {
        self.front.pid()
    }

    /// The running server.
    pub fn front(&self) -> &Front {
        &self.front
    }

    /// Writes a line as it is.
    pub fn raw(&mut self, line: &str) {
        self.front.write(format!("{line}\n").as_bytes());
    }

    /// Sends a request and returns its number.
    pub fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        let mut meta = self.meta.clone();
        if self.era == Era::Modern {
            let extensions = if self.tasks { json!({"io.modelcontextprotocol/tasks": {}}) } else { json!({}) };
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": self.name, "version": "0"});
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({"extensions": extensions});
        }
        if self.progress {
            meta["progressToken"] = json!(self.last);
        }
        if meta.as_object().is_some_and(|meta| !meta.is_empty()) {
            params["_meta"] = meta;
        }
        let request = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.raw(&request.to_string());
        self.last
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.raw(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Starts a tool call and returns its number.
    pub fn start(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Gives a request up.
    pub fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({"requestId": id, "reason": "a test"}));
    }

    /// Everything that the server has said so far.
    ///
    /// # Panics
    /// When something on its standard output is no JSON-RPC message.
    #[track_caller]
    pub fn said(&self) -> Vec<Json> {
        messages(&self.front.stdout())
    }

    /// The answer to a request, whether it is there.
    pub fn answered(&self, id: u64) -> Option<Json> {
        self.said().into_iter().find(|message| is_answer(message, id))
    }

    /// Waits for the answer to a request: its result, or its error.
    #[track_caller]
    pub fn answer(&self, id: u64) -> Json {
        let what = format!("the answer to request {id}");
        let text = self.front.wait_stdout(&what, |text| messages(text).iter().any(|message| is_answer(message, id)));
        messages(&text).into_iter().find(|message| is_answer(message, id)).expect("it was waited for")
    }

    /// Makes a request and waits for its answer.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Json {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a tool and waits for its reply.
    #[track_caller]
    pub fn tool(&mut self, name: &str, arguments: Value) -> Reply {
        let id = self.start(name, arguments);
        self.reply(id)
    }

    /// Waits for the reply to a tool call.
    #[track_caller]
    pub fn reply(&self, id: u64) -> Reply {
        let answer = self.answer(id);
        assert!(answer.has("/result"), "an error instead of a reply: {answer:?}");
        Reply::of(Json(answer.at("/result").clone()))
    }

    /// `run` in the background: the id.
    #[track_caller]
    pub fn background(&mut self, line: &str) -> String {
        let reply = self.tool("run", json!({"command": line, "background": true}));
        assert!(!reply.is_error, "not started: {reply:?}");
        reply.command().str("/id").to_owned()
    }

    /// The progress that was reported for a request.
    pub fn progress_of(&self, id: u64) -> Vec<Json> {
        let said = self.said().into_iter();
        said.filter(|message| {
            message.0["method"] == "notifications/progress" && message.0["params"]["progressToken"] == id
        })
        .map(|message| Json(message.at("/params").clone()))
        .collect()
    }

    /// Closes the server's input and waits for its end.
    #[track_caller]
    pub fn close(mut self) -> Output {
        self.front.close_input();
        self.front.wait()
    }

    /// Waits for the end of a server that was sent a signal.
    #[track_caller]
    pub fn wait(self) -> Output {
        self.front.wait_killed()
    }
}

impl Reply {
    /// Reads a result.
    ///
    /// # Panics
    /// When it is not one text block, or an object in its `_meta` is against the contract.
    #[track_caller]
    pub fn of(result: Json) -> Reply {
        let content = result.items("/content");
        assert!(content.len() == 1 && content[0].str("/type") == "text", "not one text block: {result:?}");
        assert!(!result.has("/structuredContent"), "structured content: {result:?}");
        let reply = Reply {
            text: content[0].str("/text").to_owned(),
            is_error: result.0["isError"] == true,
            result: result.clone(),
        };
        if let Some(command) = reply.meta("outlast/command") {
            let with_text = command.0["output"].get("text").is_some();
            contract::check_command(&command.0, with_text).unwrap_or_else(|breach| panic!("{breach} in {command:?}"));
        }
        reply
    }

    fn meta(&self, key: &str) -> Option<Json> {
        self.result.0["_meta"].get(key).cloned().map(Json)
    }

    /// The object of its one command.
    #[track_caller]
    pub fn command(&self) -> Json {
        self.meta("outlast/command").unwrap_or_else(|| panic!("no command in {self:?}"))
    }

    /// The objects of its list.
    #[track_caller]
    pub fn commands(&self) -> Vec<Json> {
        self.meta("outlast/list").unwrap_or_else(|| panic!("no list in {self:?}")).items("/commands")
    }

    /// Its first line.
    pub fn first_line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// Its lines of news.
    pub fn news(&self) -> Vec<&str> {
        self.text.lines().filter(|line| line.starts_with("[outlast] ")).collect()
    }
}

#[track_caller]
fn messages(stdout: &str) -> Vec<Json> {
    // The last line may not have come whole.
    let whole = stdout.rfind('\n').map_or("", |end| &stdout[..end]);
    let all = whole.lines().map(Json::parse);
    all.inspect(|message| assert_eq!(message.0["jsonrpc"], "2.0", "no JSON-RPC: {message:?}")).collect()
}

fn is_answer(message: &Json, id: u64) -> bool {
    message.0["id"] == id && message.0.get("method").is_none()
}
