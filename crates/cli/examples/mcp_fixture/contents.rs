//! The resources and prompts that suites read, and the pictures in them.

use rmcp::ErrorData;
use rmcp::model::{
    ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt, PromptArgument, PromptMessage,
    ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role,
};
use serde_json::json;

use crate::asks;

/// One red point, as PNG.
pub const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";
/// No sound, as WAV.
pub const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const TEMPLATE: (&str, &str) = ("test://template/", "/data");

/// A resource inside of a result.
pub fn embedded(uri: &str, kind: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::text(text, uri).with_mime_type(kind))
}

/// All resources.
pub fn resources() -> Vec<Resource> {
    vec![
        Resource::new(TEXT, "text").with_description("A text that never changes").with_mime_type("text/plain"),
        Resource::new(BINARY, "binary").with_description("A picture that never changes").with_mime_type("image/png"),
    ]
}

/// The one template.
pub fn templates() -> Vec<ResourceTemplate> {
    vec![ResourceTemplate::new("test://template/{id}/data", "template").with_mime_type("application/json")]
}

/// Reads a resource.
pub fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        TEXT => {
            ResourceContents::text("This is the content of the static text resource.", uri).with_mime_type("text/plain")
        }
        BINARY => ResourceContents::blob(PICTURE, uri).with_mime_type("image/png"),
        _ => {
            let id = uri.strip_prefix(TEMPLATE.0).and_then(|rest| rest.strip_suffix(TEMPLATE.1));
            let not_found = || ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri})));
            let id = id.ok_or_else(not_found)?;
            let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string();
            ResourceContents::text(text, uri).with_mime_type("application/json")
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// All prompts.
pub fn prompts() -> Vec<Prompt> {
    let argument = |name: &str| PromptArgument::new(name).with_description("A word").with_required(true);
    let uri = PromptArgument::new("resourceUri").with_description("A resource").with_required(true);
    vec![
        Prompt::new("test_simple_prompt", Some("Without arguments"), None),
        Prompt::new("test_prompt_with_arguments", Some("With two"), Some(vec![argument("arg1"), argument("arg2")])),
        Prompt::new("test_prompt_with_embedded_resource", Some("With a resource"), Some(vec![uri])),
        Prompt::new("test_prompt_with_image", Some("With a picture"), None),
        Prompt::new(asks::PROMPT, Some("Asks the client first"), None),
    ]
}

/// Gives a prompt.
pub fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let argument =
        |name: &str| request.arguments.as_ref().and_then(|all| all.get(name)?.as_str()).unwrap_or_default().to_owned();
    let text = |text: &str| PromptMessage::new_text(Role::User, text);
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            vec![text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let content = embedded(&argument("resourceUri"), "text/plain", "Embedded resource content for testing.");
            vec![PromptMessage::new(Role::User, content), text("Please process the embedded resource above.")]
        }
        "test_prompt_with_image" => {
            let picture = ContentBlock::image(PICTURE, "image/png");
            vec![PromptMessage::new(Role::User, picture), text("Please analyze the image above.")]
        }
        asks::PROMPT => match asks::answer(request.input_responses.as_ref(), "user_context", "context") {
            Some(context) => vec![text(&format!("The context is {context}."))],
            None => {
                let question = asks::form("user_context", "What context should the prompt use?", "context", "string");
                return Ok(asks::require(question, None)?.into());
            }
        },
        _ => return Err(ErrorData::invalid_params("there is no such prompt", None)),
    };
    Ok(GetPromptResult::new(messages).into())
}
