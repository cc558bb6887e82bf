//! What is known of the clients: how long each of them waits for one call.

use std::time::Duration;

/// The longest wait that may be asked for.
pub const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// How long a call may take where nothing is known of the client: all that are known wait for 60 s.
const UNKNOWN: Duration = Duration::from_secs(45);

/// The beginning of the name that a client gives itself, the longest call with progress and without, in seconds.
///
/// As seen with opencode 1.18, pi 1.6, Qwen Code 0.24, Codex 0.171, Gemini CLI 0.61 and Claude Code 2.1, each in its
/// own configuration: less than they wait, so that the reply is there before. Progress makes the first three wait
/// longer; Claude Code moves a call to its own background after 120 s.
const KNOWN: [(&str, u64, u64); 6] = [
    ("opencode", 600, 45),
    ("pi", 600, 45),
    ("qwen-cli-mcp-client", 600, 280),
    ("codex-mcp-client", 280, 280),
    ("gemini-cli-mcp-client", 580, 580),
    ("claude-code", 110, 110),
];

/// The longest that one call may take. `operator`: what somebody who has configured the client says of it.
pub fn longest_call(client: Option<&str>, has_progress: bool, operator: Option<Duration>) -> Duration {
    if let Some(most) = operator {
        return most.min(LONGEST_WAIT);
    }
    let known = client.and_then(|name| {
        KNOWN.iter().find(|(prefix, ..)| {
            let rest = name.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    });
    known.map_or(UNKNOWN, |(_, with, without)| Duration::from_secs(if has_progress { *with } else { *without }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: E1
    #[test]
    fn e1_a_call_ends_before_its_client_gives_up() {
        for (client, with, without) in [
            (Some("opencode"), 600, 45),
            (Some("pi"), 600, 45),
            (Some("qwen-cli-mcp-client-outlast"), 600, 280),
            (Some("codex-mcp-client"), 280, 280),
            (Some("gemini-cli-mcp-client"), 580, 580),
            (Some("claude-code"), 110, 110),
            (Some("pirate"), 45, 45),
            (None, 45, 45),
        ] {
            let of = |progress| longest_call(client, progress, None).as_secs();
            assert_eq!((of(true), of(false)), (with, without), "{client:?}");
        }
        let raised = |secs| longest_call(Some("pi"), false, Some(Duration::from_secs(secs))).as_secs();
        assert_eq!((raised(300), raised(3600)), (300, 600));
    }
}
