//! What suites want a server to ask its client: in the answer of a call (2026-07-28), or by a request (before).

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, InputRequiredResult,
    InputResponses, JsonObject, ServerRequest,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

/// The prompt that asks first.
pub const PROMPT: &str = "test_input_required_result_prompt";
/// Where the tools of this kind begin.
pub const PREFIX: &str = "test_input_required_result_";

/// The state that a client hands back. It stands for nothing: a real server would sign what is in it.
const STATES: [&str; 2] = ["round-1-7f3a9c", "round-2-d04b1e"];

/// A question with one field.
pub fn form(key: &str, message: &str, field: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({key: {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}})
}

fn sampling(key: &str, text: &str) -> Value {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": text}}]);
    json!({key: {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}}})
}

fn roots() -> Value {
    json!({"client_roots": {"method": "roots/list", "params": {}}})
}

/// An answer that asks.
pub fn require(questions: Value, state: Option<&str>) -> Result<InputRequiredResult, ErrorData> {
    Ok(InputRequiredResult::new(Some(typed(questions)?), state.map(str::to_owned)))
}

/// The field of an accepted form.
pub fn answer(responses: Option<&InputResponses>, key: &str, field: &str) -> Option<String> {
    let response = responses?.get(key)?;
    let value = (response["action"] == "accept").then(|| &response["content"][field])?;
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Text of the fixture as the type that it stands for.
pub fn typed<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A complete answer with this text.
pub fn said(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text.into())]).into()
}

/// The tools that ask in their answer.
pub fn ask(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let responses = request.input_responses.as_ref();
    let state = request.request_state.as_deref();
    if state.is_some_and(|state| !STATES.contains(&state)) {
        return Err(ErrorData::invalid_params("this requestState is none of this server", None));
    }
    let has = |key: &str| responses.and_then(|all| all.get(key)).is_some_and(Value::is_object);
    let name = || form("user_name", "What is your name?", "name", "string");
    let confirm = || form("confirm", "Please confirm", "ok", "boolean");
    Ok(match request.name.strip_prefix(PREFIX).unwrap_or_default() {
        "elicitation" => match answer(responses, "user_name", "name") {
            Some(name) => said(format!("Hello, {name}!")),
            None => require(name(), None)?.into(),
        },
        "sampling" if has("capital_question") => said("the client has sampled"),
        "sampling" => require(sampling("capital_question", "What is the capital of France?"), None)?.into(),
        "list_roots" if has("client_roots") => said("the client has named its roots"),
        "list_roots" => require(roots(), None)?.into(),
        "request_state" | "tampered_state" => match (answer(responses, "confirm", "ok"), state) {
            (Some(_), Some(_)) => said("state-ok"),
            _ => require(confirm(), Some(STATES[0]))?.into(),
        },
        "multiple_inputs" if has("user_name") && has("greeting") && has("client_roots") => said("all are answered"),
        "multiple_inputs" => {
            let all = merged(&[name(), sampling("greeting", "Generate a greeting"), roots()]);
            require(all, Some(STATES[0]))?.into()
        }
        "multi_round" => match (state, has("step1"), has("step2")) {
            (Some(state), _, true) if state == STATES[1] => said("all rounds are done"),
            (Some(state), true, _) if state == STATES[0] => {
                require(form("step2", "What is your favorite color?", "color", "string"), Some(STATES[1]))?.into()
            }
            _ => require(form("step1", "What is your name?", "name", "string"), Some(STATES[0]))?.into(),
        },
        "capabilities" => require(merged(&allowed(context)), None)?.into(),
        _ => return Err(ErrorData::invalid_params("there is no such tool", None)),
    })
}

/// Questions for what this client has declared.
fn allowed(context: &RequestContext<RoleServer>) -> Vec<Value> {
    let declared = context.client_capabilities().unwrap_or_default();
    let mut questions = Vec::new();
    if samples(&declared) {
        questions.push(sampling("sample", "Say a word"));
    }
    if declared.elicitation.is_some() {
        questions.push(form("elicit", "Say a word", "word", "string"));
    }
    questions
}

/// Whether a client can be asked for a sample.
pub fn samples(declared: &ClientCapabilities) -> bool {
    serde_json::to_value(declared).is_ok_and(|declared| declared.get("sampling").is_some())
}

fn merged(parts: &[Value]) -> Value {
    let all: JsonObject =
        parts.iter().filter_map(Value::as_object).flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
    Value::Object(all)
}

/// The tools that send the client a request, which only an older client in a session takes.
pub async fn request(
    name: &str,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let given = |key: &str| arguments.get(key).cloned().unwrap_or_default();
    let ask = match name {
        "test_sampling" => {
            let messages = json!([{"role": "user", "content": {"type": "text", "text": given("prompt")}}]);
            json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}})
        }
        "test_elicitation" => elicitation(&given("message"), person()),
        "test_elicitation_sep1034_defaults" => elicitation(&json!("Take the defaults"), defaults()),
        _ => elicitation(&json!("Choose"), choices()),
    };
    let answered = context.peer.send_request(typed::<ServerRequest>(ask)?).await;
    let answer = match answered {
        Ok(answer) => serde_json::to_value(answer).unwrap_or_default(),
        Err(error) => return Ok(CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into()),
    };
    let (action, content) = (&answer["action"], &answer["content"]);
    Ok(said(match name {
        "test_sampling" => format!("LLM response: {}", content["text"].as_str().unwrap_or_default()),
        "test_elicitation" => format!("User response: action={action}, content={content}"),
        _ => format!("Elicitation completed: action={action}, content={content}"),
    }))
}

fn elicitation(message: &Value, schema: Value) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn person() -> Value {
    json!({"type": "object", "required": ["username", "email"], "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"}}})
}

fn defaults() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true}}})
}

fn choices() -> Value {
    let titled = |word: &str| {
        let one =
            |number: u32, title: &str| json!({"const": format!("value{number}"), "title": format!("{title} {word}")});
        json!([one(1, "First"), one(2, "Second"), one(3, "Third")])
    };
    json!({"type": "object", "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}}}})
}
