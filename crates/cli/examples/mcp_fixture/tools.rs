//! The tools of the fixture: what they are called, what they take, what they answer at once.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, JsonObject, ProgressNotificationParam,
    ServerNotification, Tool, object,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::asks::{said, samples, typed};
use crate::contents::{PICTURE, SOUND, embedded};

/// Tools without arguments.
const PLAIN: [&str; 30] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_error_handling",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_tool_with_task",
    "failing_job",
    "protocol_error_job",
    "multi_input",
    // Not a suite's: it proves that a panic is answered.
    "panics",
    "panics_later",
];

/// All tools of the fixture.
pub fn all() -> Vec<Tool> {
    let text = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let seconds = json!({"type": "object", "required": ["seconds"], "properties": {
        "seconds": {"type": "number"}, "label": {"type": "string"}}});
    let with_header = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    let mut tools: Vec<Tool> =
        PLAIN.iter().map(|name| tool(name, json!({"type": "object", "additionalProperties": false}))).collect();
    tools.extend([
        tool("test_sampling", text("prompt")),
        tool("test_elicitation", text("message")),
        tool("test_custom_header", with_header),
        tool("json_schema_2020_12_tool", rich_schema()),
        tool("greet", text("name")),
        tool("confirm_delete", text("filename")),
        tool("slow_compute", seconds),
    ]);
    tools
}

fn tool(name: &str, schema: Value) -> Tool {
    Tool::new(name.to_owned(), "A tool of the fixture", object(schema))
}

fn rich_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
            "street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    })
}

/// Answers the tools that need nothing but the call.
pub async fn call(
    name: &str,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let shown = |content: Vec<ContentBlock>| CallToolResult::success(content).into();
    Ok(match name {
        "test_simple_text" => said("This is a simple text response for testing."),
        "test_image_content" => shown(vec![ContentBlock::image(PICTURE, "image/png")]),
        "test_audio_content" => shown(vec![ContentBlock::audio(SOUND, "audio/wav")]),
        "test_embedded_resource" => {
            shown(vec![embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")])
        }
        "test_multiple_content_types" => shown(vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PICTURE, "image/png"),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]),
        "test_error_handling" => {
            let text = "This tool intentionally returns an error for testing";
            CallToolResult::error(vec![ContentBlock::text(text)]).into()
        }
        "test_tool_with_logging" => {
            for text in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                log(context, text).await?;
            }
            said("it has logged")
        }
        "test_logging_tool" => {
            if context.meta.log_level().is_some() {
                log(context, "asked for").await?;
            }
            said("it has logged what was asked for")
        }
        "test_tool_with_progress" => {
            for (step, message) in [(0.0, "begun"), (50.0, "half"), (100.0, "done")] {
                if let Some(token) = context.meta.get_progress_token() {
                    let progress = ProgressNotificationParam::new(token, step).with_total(100.0).with_message(message);
                    // A client that is gone hears nothing.
                    let _gone = context.peer.notify_progress(progress).await;
                }
            }
            said("it has told its progress")
        }
        "test_missing_capability" => {
            if !context.client_capabilities().is_some_and(|declared| samples(&declared)) {
                let required: ClientCapabilities = typed(json!({"sampling": {}}))?;
                return Err(ErrorData::missing_required_client_capability(required));
            }
            said("the client can sample")
        }
        "greet" => said(format!("Hello, {}!", arguments.get("name").and_then(Value::as_str).unwrap_or_default())),
        "test_custom_header" | "json_schema_2020_12_tool" | "test_reconnection" => said("it was called"),
        "panics" => panic!("this tool panics"),
        "panics_later" => {
            tokio::task::yield_now().await;
            panic!("this tool panics after it has waited")
        }
        _ => return Err(ErrorData::invalid_params("there is no such tool", None)),
    })
}

/// Logs by a notification. The types for it are on their way out of the protocol, so the words are written here.
async fn log(context: &RequestContext<RoleServer>, text: &str) -> Result<(), ErrorData> {
    let params = json!({"level": "info", "logger": "fixture", "data": text});
    let message = typed::<ServerNotification>(json!({"method": "notifications/message", "params": params}))?;
    // A client that is gone hears nothing.
    let _gone = context.peer.send_notification(message).await;
    Ok(())
}
