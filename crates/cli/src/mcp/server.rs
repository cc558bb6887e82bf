//! The handler: what the protocol asks, answered out of the library, and a panic turned into an answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use outlast::Runtime;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, ErrorCode, GetTaskParams,
    GetTaskResult, Implementation, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities,
    ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};

use super::arguments;
use super::call::{Call, Departures, Progress};
use super::delivery::Delivery;
use super::inbox::{self, Notices};
use super::places::{Desk, HEADER_SESSION, Origin, Places};
use super::reply::{Answer, Reply, failure_text};
use super::settings::Settings;
use super::tools::{self, Name};
use super::{list, read, run, send, stop, task, wait};
use crate::exit::Failure;

/// Methods that take params.
const SERVED: [&str; 5] = ["tools/call", "tools/list", "tasks/get", "tasks/update", "tasks/cancel"];

/// Characters of an unknown method that its refusal repeats.
const LONGEST_NAME: usize = 100;

/// The MCP server. Clones are the same.
#[derive(Clone)]
pub struct Server {
    desk: Desk,
    settings: Arc<Settings>,
    places: Places,
    notices: Notices,
    departures: Departures,
}

impl Server {
    /// A server with these settings of the library. It opens and makes nothing before the first call.
    pub fn new(library: outlast::Config, settings: Settings) -> Server {
        let desk = Desk::new(library);
        let places = Places::new(desk.clone(), settings.place.clone());
        Server {
            desk,
            settings: Arc::new(settings),
            places,
            notices: Notices::default(),
            departures: Departures::default(),
        }
    }

    /// The state directory that it works in.
    pub fn runtime(&self) -> outlast::Result<Runtime> {
        self.desk.runtime()
    }

    async fn answer(
        &self,
        name: Name,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answer, Failure> {
        if name.is_follow_up() && self.settings.foreground_only {
            let text = format!("the tool `{}` is not offered: this server runs with --foreground-only", name.word());
            return Ok(Reply::error(text).into());
        }
        if name.is_follow_up() {
            self.departures.settled().await;
        }
        let given = request.arguments;
        let call = self.call(context).await?;
        let answer = match name {
            Name::Run => run::run(&call, read_arguments(name, given)?).await,
            Name::Wait => wait::wait(&call, read_arguments(name, given)?).await,
            Name::Read => read::read(&call, read_arguments(name, given)?).await,
            Name::List => list::list(&call, read_arguments(name, given)?).await,
            Name::Stop => stop::stop(&call, read_arguments(name, given)?).await,
            Name::Send => send::send(&call, read_arguments(name, given)?).await,
        };
        if name == Name::Run {
            keep_within_bounds(&call);
        }
        let mut reply = match answer {
            Ok(Answer::Reply(reply)) => reply,
            Ok(other) => return Ok(other),
            Err(failure) => Reply::error(format!("{}\n", failure_text(&failure))),
        };
        if !reply.text.ends_with('\n') {
            reply.text.push('\n');
        }
        if call.session.has_records() {
            // The reply is worth more than the news behind it, which stay to be told.
            reply.text.push_str(&match inbox::lines(&call).await {
                Ok(lines) => lines,
                Err(failure) => inbox::untold(&failure_text(&failure)),
            });
        }
        // A client that has given up meanwhile is answered nothing, and told of nothing.
        Ok(if context.ct.is_cancelled() { Answer::Cancelled } else { reply.into() })
    }

    async fn call(&self, context: &RequestContext<RoleServer>) -> Result<Call, Failure> {
        let header = context
            .extensions
            .get::<http::request::Parts>()
            .and_then(|parts| parts.headers.get(HEADER_SESSION)?.to_str().ok().map(str::to_owned));
        let origin = Origin::of(&context.meta, header.as_deref());
        let progress = context.meta.get_progress_token().map(|token| Progress::new(context.peer.clone(), token));
        Ok(Call {
            settings: self.settings.clone(),
            session: self.places.session(&origin).await?,
            consumer: origin.consumer(),
            cancelled: context.ct.clone(),
            progress,
            delivery: delivery(context),
            tasks: declares_tasks(context),
            client: context.client_info().map(|info| info.name),
            notices: self.notices.clone(),
            departures: self.departures.clone(),
        })
    }
}

/// Removes what is beyond the operator's bounds, once in a while, and lets no call wait for it.
fn keep_within_bounds(call: &Call) {
    let (runtime, keep) = (call.session.runtime().clone(), call.settings.bounds.keep);
    tokio::spawn(async move {
        // Nobody has asked for it; `outlast gc` does the same and says what stands in its way.
        let _unsaid = runtime.retain_if_due(&keep).await;
    });
}

fn read_arguments<T: serde::de::DeserializeOwned>(
    name: Name,
    given: Option<rmcp::model::JsonObject>,
) -> Result<T, Failure> {
    arguments::read(name.word(), given).map_err(Failure::Usage)
}

/// What the transport watches for this request; one that nobody watches tells nothing.
fn delivery(context: &RequestContext<RoleServer>) -> Delivery {
    let of_http = || context.extensions.get::<http::request::Parts>()?.extensions.get::<Delivery>().cloned();
    context.extensions.get::<Delivery>().cloned().or_else(of_http).unwrap_or_default()
}

/// Whether this very request may become a task: by its version and by what it declares itself. A client that declares
/// the extension in an older session cannot read one.
fn declares_tasks(context: &RequestContext<RoleServer>) -> bool {
    let is_modern = context
        .meta
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    is_modern && context.meta.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

/// Turns a panic of a handler into an error, so that its request is answered and the others go on.
pub async fn guarded<T>(handler: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
    match AssertUnwindSafe(handler).catch_unwind().await {
        Ok(answer) => answer,
        Err(_) => Err(ErrorData::internal_error(
            "outlast failed in this call (a panic, described on its standard error); commands are not touched by it",
            None,
        )),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut server = Implementation::new("outlast", env!("CARGO_PKG_VERSION"));
        server.title = Some("outlast".to_owned());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
            .with_server_info(server)
            .with_instructions(tools::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::offered(!self.settings.foreground_only)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Name::of(name).map(Name::tool)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(name) = Name::of(&request.name) else {
            let given = outlast_core::names::display_line(&request.name);
            return Err(ErrorData::invalid_params(format!("there is no tool {given}"), None));
        };
        guarded(async {
            match self.answer(name, request, &context).await {
                Ok(Answer::Reply(reply)) => Ok(CallToolResponse::Complete(reply.result())),
                Ok(Answer::Task(task)) => Ok(CallToolResponse::Task(*task)),
                Ok(Answer::Cancelled) => Err(ErrorData::internal_error("the call was cancelled", None)),
                Err(failure) => Ok(CallToolResponse::Complete(Reply::error(failure_text(&failure)).result())),
            }
        })
        .await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A method that is served, and that did not read as what it should be.
        if SERVED.contains(&request.method.as_str()) {
            return Err(ErrorData::invalid_params(format!("the params of {} are malformed", request.method), None));
        }
        let given = outlast_core::names::shorten(&request.method, LONGEST_NAME);
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {given}"), None))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        guarded(task::get(&self.desk, &request.task_id, &delivery(&context))).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // No task of ours asks for anything, so that every answer is one to an unknown question.
        guarded(task::known(&self.desk, &request.task_id)).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        guarded(task::cancel(&self.desk, &request.task_id)).await
    }
}
