//! The arguments of the tools: what they are, for the schemas and for reading them.

use std::time::Duration;

use outlast::Until;
use outlast_core::units;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

/// `run`
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunArguments {
    /// The shell line, run with `sh -c`.
    pub command: String,
    /// The working directory; a relative one is beneath the server's own, which is the default.
    #[serde(default)]
    #[schemars(with = "String")]
    pub cwd: Option<String>,
    /// Start in the background at once and return the id. For servers, watchers and whatever does not end by itself.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub background: Option<bool>,
    /// How long to wait for the end before the command goes on in the background, such as "10s". Default 45s, at most 110s.
    #[serde(default)]
    #[schemars(with = "String")]
    pub grace: Option<Time>,
    /// Stop the command after this time, such as "10m". Default: no limit.
    #[serde(default)]
    #[schemars(with = "String")]
    pub limit: Option<Time>,
    /// Stop the command when it has printed nothing for this time.
    #[serde(default)]
    #[schemars(with = "String")]
    pub idle_limit: Option<Time>,
    /// Tell me with a later reply when it has printed nothing for this time; it is not stopped. Default: 15m, "0s": never.
    #[serde(default)]
    #[schemars(with = "String")]
    pub quiet_after: Option<Time>,
    /// A few words that name the command in lists.
    #[serde(default)]
    #[schemars(with = "String")]
    pub label: Option<String>,
    /// Environment variables, each as NAME=value.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub env: Option<Vec<String>>,
    /// Keep its standard input open, for `send`.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub stdin: Option<bool>,
    /// "session" (default): it ends with the session. "detached" or "detached:8h": it outlives the session, for 24h or so long.
    #[serde(default)]
    #[schemars(with = "String")]
    pub lifetime: Option<String>,
    /// Start a process of its own although the same command runs already.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub unique: Option<bool>,
}

/// `wait`
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitArguments {
    /// One id.
    #[serde(default)]
    #[schemars(with = "String")]
    pub id: Option<String>,
    /// Several ids. No id at all: every command that runs.
    #[serde(default, deserialize_with = "one_or_many")]
    #[schemars(with = "Vec<String>")]
    pub ids: Vec<String>,
    /// Return as soon as one of them is done.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub any: Option<bool>,
    /// What to wait for: "exit" (default), "output:REGEX" for a line that matches, or "quiet:5s" for silence.
    #[serde(default)]
    #[schemars(with = "String")]
    pub until: Option<String>,
    /// Return after this time at the latest, such as "2m": at least 1s, at most 600s. What runs goes on.
    #[serde(default)]
    #[schemars(with = "String")]
    pub timeout: Option<Time>,
}

/// `read`
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArguments {
    /// The id.
    pub id: String,
    /// Only the last so many lines.
    #[serde(default)]
    #[schemars(with = "u32")]
    pub tail: Option<u64>,
    /// Only the first so many lines.
    #[serde(default)]
    #[schemars(with = "u32")]
    pub head: Option<u64>,
    /// Begin at this byte of the output.
    #[serde(default)]
    #[schemars(with = "u32")]
    pub offset: Option<u64>,
    /// Show at most so many bytes: 7168 by default, up to 65536.
    #[serde(default)]
    #[schemars(with = "u32")]
    pub bytes: Option<u64>,
    /// Only lines that match this regular expression.
    #[serde(default)]
    #[schemars(with = "String")]
    pub grep: Option<String>,
    /// The text as it was printed: colours, redrawn lines and repetitions stay in.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub raw: Option<bool>,
}

/// `list`
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArguments {
    /// Also those that have ended.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub all: Option<bool>,
}

/// `stop`
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopArguments {
    /// One id.
    #[serde(default)]
    #[schemars(with = "String")]
    pub id: Option<String>,
    /// Several ids.
    #[serde(default, deserialize_with = "one_or_many")]
    #[schemars(with = "Vec<String>")]
    pub ids: Vec<String>,
    /// Stop it although other callers wait for the same command.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub force: Option<bool>,
}

/// `send`
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendArguments {
    /// The id.
    pub id: String,
    /// Text for its standard input; a line break is added if it ends with none.
    #[serde(default)]
    #[schemars(with = "String")]
    pub text: Option<String>,
    /// Close its standard input, after the text.
    #[serde(default)]
    #[schemars(with = "bool")]
    pub eof: Option<bool>,
    /// Send this signal to it, such as "INT" or "HUP". To end a command use `stop`.
    #[serde(default)]
    #[schemars(with = "String")]
    pub signal: Option<String>,
}

/// A duration with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A bare number may be seconds or milliseconds, and a wrong guess would be a thousandfold wait.
        let form = "it must be a text with a unit, such as \"500ms\", \"30s\" or \"5m\"";
        let text = String::deserialize(deserializer).map_err(|error| D::Error::custom(format!("{error}; {form}")))?;
        units::parse_duration(&text).map(Time).map_err(|error| D::Error::custom(format!("{error}; {form}")))
    }
}

/// A single id where a list was asked for is a list of one.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a list of ids")]
    enum Ids {
        Many(Vec<String>),
        One(String),
        None(()),
    }
    Ok(match Ids::deserialize(deserializer)? {
        Ids::Many(ids) => ids,
        Ids::One(id) => vec![id],
        Ids::None(()) => Vec::new(),
    })
}

/// The ids of `id` and `ids` together, each once.
pub fn ids(one: Option<String>, many: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for id in one.into_iter().chain(many) {
        if !all.contains(&id) {
            all.push(id);
        }
    }
    all
}

/// The most ids that one call takes.
const MOST_IDS: usize = 100;

/// Refuses a call that names more commands than a session may run.
pub fn check_ids(tool: &str, ids: &[String]) -> Result<(), String> {
    if ids.len() <= MOST_IDS {
        return Ok(());
    }
    Err(format!("`{tool}` was called wrongly: argument `ids` has {} ids, and one call takes {MOST_IDS}", ids.len()))
}

/// Reads the arguments of a call. The error names the argument, for the model to mend its call.
pub fn read<T: DeserializeOwned>(tool: &str, given: Option<JsonObject>) -> Result<T, String> {
    let value = serde_json::Value::Object(given.unwrap_or_default());
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!("argument `{path}`: ") };
        format!("`{tool}` was called wrongly: {place}{}", error.into_inner())
    })
}

/// Reads `until`.
pub fn until(text: Option<&str>) -> Result<Until, String> {
    let wrong = |reason: &dyn std::fmt::Display| format!("`wait` was called wrongly: argument `until`: {reason}");
    match text.unwrap_or("exit").split_once(':') {
        None if text.is_none_or(|text| text == "exit") => Ok(Until::Exit),
        Some(("output", expression)) => {
            let regex = regex::bytes::Regex::new(expression);
            regex.map(Until::Output).map_err(|error| wrong(&format!("no regular expression: {error}")))
        }
        Some(("quiet", time)) => units::parse_duration(time).map(Until::Quiet).map_err(|error| wrong(&error)),
        _ => Err(wrong(&"it must be \"exit\", \"output:REGEX\" or \"quiet:5s\"")),
    }
}

/// The schema of the arguments, without what clients stumble over: number formats, titles and defaults.
pub fn schema<T: JsonSchema>() -> JsonObject {
    let mut schema = serde_json::to_value(schemars::schema_for!(T)).unwrap_or_default();
    plain(&mut schema);
    match schema {
        serde_json::Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn plain(schema: &mut serde_json::Value) {
    let serde_json::Value::Object(object) = schema else { return };
    for key in ["$schema", "title", "format", "default"] {
        object.remove(key);
    }
    // The description of the whole is the tool's own.
    if object.contains_key("properties") {
        object.remove("description");
    }
    if let Some(serde_json::Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(plain);
    }
    if let Some(items) = object.get_mut("items") {
        plain(items);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(value: serde_json::Value) -> Option<JsonObject> {
        value.as_object().cloned()
    }

    /// Covers: U1, U2, A12
    #[test]
    fn u1_a_wrong_call_is_told_by_the_name_of_its_argument() {
        let run = |value| read::<RunArguments>("run", given(value)).map(|args| args.command);
        for (wrong, words) in [
            (json!({}), &["run", "command"][..]),
            (json!({"command": 5}), &["`command`", "string"]),
            (json!({"command": "true", "nope": 1}), &["nope", "command", "cwd", "grace"]),
            (json!({"command": "true", "ids": ["w1"]}), &["ids"]),
            (json!({"command": "true", "grace": 10}), &["`grace`", "30s"]),
            (json!({"command": "true", "grace": "soon"}), &["`grace`", "soon", "30s"]),
            (json!({"command": "true", "env": "A=B"}), &["`env`"]),
            (json!({"command": "true", "background": "yes"}), &["`background`", "boolean"]),
        ] {
            let error = run(wrong.clone()).expect_err("a wrong call");
            assert!(words.iter().all(|word| error.contains(word)), "{wrong}: {error}");
        }
        assert_eq!(run(json!({"command": "true", "cwd": null})), Ok("true".to_owned()));
        assert!(read::<ReadArguments>("read", None).err().is_some_and(|error| error.contains("`id`")));
        assert!(read::<SendArguments>("send", given(json!({"text": "x"}))).is_err());
    }

    /// Covers: U3
    #[test]
    fn u3_a_wait_takes_one_id_or_several() {
        let wait = |value| read::<WaitArguments>("wait", given(value)).map(|args| ids(args.id, args.ids));
        assert_eq!(wait(json!({})), Ok(vec![]));
        assert_eq!(wait(json!({"id": "w1", "ids": ["w1", "w2"]})), Ok(vec!["w1".into(), "w2".into()]));
        assert_eq!(wait(json!({"ids": "w3"})), Ok(vec!["w3".into()]));
        assert_eq!(wait(json!({"ids": null})), Ok(vec![]));
        assert!(wait(json!({"ids": 3})).is_err());
    }

    #[test]
    fn what_is_waited_for_is_read() {
        assert!(matches!(until(None), Ok(Until::Exit)));
        assert!(matches!(until(Some("output:a:b")), Ok(Until::Output(_))));
        assert!(matches!(until(Some("quiet:2s")), Ok(Until::Quiet(_))));
        for wrong in ["", "end", "output:(", "quiet:2"] {
            assert!(until(Some(wrong)).err().is_some_and(|error| error.contains("`until`")), "{wrong}");
        }
    }

    #[test]
    fn schemas_are_plain() {
        let text = serde_json::to_string(&schema::<ReadArguments>()).expect("plain data");
        for word in ["format", "null", "default", "title", "$schema", "$ref"] {
            assert!(!text.contains(&format!("\"{word}\"")), "{word}: {text}");
        }
        assert!(text.contains("\"additionalProperties\":false"), "{text}");
        let required = |schema: JsonObject| schema.get("required").cloned().unwrap_or(json!([]));
        assert_eq!(required(schema::<RunArguments>()), json!(["command"]));
        assert_eq!(required(schema::<WaitArguments>()), json!([]));
        assert_eq!(required(schema::<ReadArguments>()), json!(["id"]));
        assert_eq!(required(schema::<StopArguments>()), json!([]));
        assert_eq!(required(schema::<SendArguments>()), json!(["id"]));
    }
}
