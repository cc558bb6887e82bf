//! The handler: every request goes to outlast's own, but those for what the fixture adds.

use outlast_cli::mcp::{Server, guarded};
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams, object,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::asks;
use crate::contents;
use crate::jobs::Jobs;
use crate::tools;

/// The fixture. Clones are the same.
#[derive(Clone)]
pub struct Fixture {
    real: Server,
    jobs: Jobs,
    changes: broadcast::Sender<Change>,
}

/// A list that is said to have changed.
#[derive(Clone, Copy)]
enum Change {
    Tools,
    Prompts,
}

impl Fixture {
    /// Over the real handler.
    pub fn over(real: Server) -> Fixture {
        Fixture { real, jobs: Jobs::default(), changes: broadcast::channel(16).0 }
    }

    async fn answer(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.to_string();
        if self.real.get_tool(&name).is_some() || !tools::all().iter().any(|tool| tool.name == name.as_str()) {
            return self.real.call_tool(request, context).await;
        }
        let arguments = request.arguments.clone().unwrap_or_default();
        let declared = context.client_capabilities().is_some_and(|declared| declared.supports_tasks());
        match name.as_str() {
            "test_trigger_tool_change" => self.change(Change::Tools),
            "test_trigger_prompt_change" => self.change(Change::Prompts),
            "test_streaming_elicitation" => {
                Ok(asks::require(asks::form("word", "Say a word", "word", "string"), None)?.into())
            }
            "test_sampling"
            | "test_elicitation"
            | "test_elicitation_sep1034_defaults"
            | "test_elicitation_sep1330_enums" => asks::request(&name, &arguments, &context).await,
            name if name.starts_with(asks::PREFIX) => asks::ask(&request, &context),
            "slow_compute" => {
                let seconds = arguments.get("seconds").and_then(Value::as_f64).unwrap_or(1.0);
                let line = format!("sleep {seconds}; echo computed");
                self.command(request, context, &line).await
            }
            "test_tool_with_task" => match asks::answer(request.input_responses.as_ref(), "user_name", "name") {
                Some(name) => {
                    request.request_state = None;
                    self.command(request, context, &format!("echo 'Hello, {}!'", name.replace('\'', ""))).await
                }
                None => {
                    Ok(asks::require(asks::form("user_name", "What is your name?", "name", "string"), None)?.into())
                }
            },
            "failing_job" | "protocol_error_job" | "confirm_delete" | "multi_input" if !declared => {
                let required = ClientCapabilities::builder().enable_tasks().build();
                Err(ErrorData::missing_required_client_capability(required))
            }
            name => match self.jobs.begin(name, &Value::Object(arguments.clone())) {
                Some(job) => job.map(CallToolResponse::Task),
                None => tools::call(name, &arguments, &context).await,
            },
        }
    }

    /// A command in the background, by the real tool: its task is outlast's own.
    async fn command(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
        line: &str,
    ) -> Result<CallToolResponse, ErrorData> {
        request.name = "run".into();
        request.arguments = Some(object(json!({"command": line, "background": true, "unique": true})));
        self.real.call_tool(request, context).await
    }

    fn change(&self, change: Change) -> Result<CallToolResponse, ErrorData> {
        // Nobody may be listening.
        let _nobody = self.changes.send(change);
        Ok(asks::said("the list is said to have changed"))
    }
}

impl ServerHandler for Fixture {
    #[expect(deprecated, reason = "older clients still ask for logs")]
    fn get_info(&self) -> ServerConfig {
        let mut info = self.real.get_info();
        info.capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        info
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = self.real.list_tools(page, context).await?;
        list.tools.extend(tools::all());
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.real.get_tool(name).or_else(|| tools::all().into_iter().find(|tool| tool.name == name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        guarded(self.answer(request, context)).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        match self.jobs.get(&request.task_id) {
            Some(job) => Ok(job),
            None => self.real.get_task(request, context).await,
        }
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.jobs.update(&request.task_id, &request.input_responses) {
            return Ok(());
        }
        self.real.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.jobs.cancel(&request.task_id) {
            return Ok(());
        }
        self.real.cancel_task(request, context).await
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(contents::resources()))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(contents::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        contents::read(&request.uri).map(Into::into)
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(contents::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        contents::prompt(&request)
    }

    #[expect(deprecated, reason = "older clients still set a level")]
    async fn set_level(
        &self,
        _request: rmcp::model::SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            let sink = subscription.sink();
            // What was not asked for is refused by the sink.
            let _sent = match change {
                Ok(Change::Tools) => sink.notify_tool_list_changed().await,
                Ok(Change::Prompts) => sink.notify_prompt_list_changed().await,
                Err(_) => return Ok(()),
            };
        }
    }
}
