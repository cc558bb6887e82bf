//! Which agent host this process serves, and which process that is.
//!
//! What a host says of itself finds the session and its predecessor, and is never a reason to trust anybody.

use outlast::{Ancestor, ancestors};

use crate::config::Config;

/// An agent host that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
    /// pi.
    Pi,
}

impl Host {
    /// The word for it on the command line and in front of its contexts.
    pub fn word(self) -> &'static str {
        match self {
            Host::Claude => "claude",
            Host::Codex => "codex",
            Host::Opencode => "opencode",
            Host::Gemini => "gemini",
            Host::Qwen => "qwen",
            Host::Pi => "pi",
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Host::Claude => "Claude Code",
            Host::Codex => "Codex",
            Host::Opencode => "opencode",
            Host::Gemini => "Gemini CLI",
            Host::Qwen => "Qwen Code",
            Host::Pi => "pi",
        }
    }

    /// How it tells its model of an end, the best way first, and how long it waits for one call. As seen with the
    /// versions that the MCP server knows of.
    pub fn ability(self) -> &'static str {
        match self {
            Host::Claude => {
                "ends are told as tasks in its terminal view, by hooks, and with the next reply; a call may take 110s"
            }
            Host::Codex => "ends are told by hooks and with the next reply; a call may take 280s",
            Host::Opencode => "ends are told by its plugin and with the next reply; a call may take 600s",
            Host::Gemini => "ends are told by hooks and with the next reply; a call may take 580s",
            Host::Qwen | Host::Pi => "ends are told with the next reply; a call may take 600s",
        }
    }

    /// The context of one of its conversations.
    pub fn context(self, conversation: &str) -> String {
        format!("{}:{conversation}", self.word())
    }
}

/// A variable that a host sets for what it starts, and the one that names its conversation. Codex sets none.
const MARKS: [(Host, &str, Option<&str>); 5] = [
    (Host::Claude, "CLAUDECODE", Some("CLAUDE_CODE_SESSION_ID")),
    (Host::Opencode, "OPENCODE", None),
    (Host::Gemini, "GEMINI_CLI", None),
    (Host::Qwen, "QWEN_CODE_CLI", Some("QWEN_CODE_SESSION_ID")),
    (Host::Pi, "PI_CODING_AGENT", None),
];

/// Variables in which a host names its own process.
const PIDS: [&str; 1] = ["OPENCODE_PID"];

/// Programs that stand between a host and what it starts, and are no host.
const WRAPPERS: [&str; 20] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox", "env", "npx", "npm", "timeout", "nice",
    "nohup", "setsid", "stdbuf", "xargs", "direnv", "mise",
];

/// The host around this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Which one it is, where it says so.
    pub host: Option<Host>,
    /// The process whose life bounds its session.
    pub anchor: u32,
    /// The conversation or project it is in; empty where it does not say.
    pub context: String,
}

impl Surroundings {
    /// Looks around. `anchor` is the process that was named, in place of the one that would be found.
    pub fn find(config: &Config, anchor: Option<u32>) -> outlast::Result<Surroundings> {
        let (host, context) = marked(|key| config.var(key));
        let anchor = match anchor {
            Some(named) => named,
            None => {
                let hint = PIDS.iter().find_map(|key| config.var(key)?.parse().ok());
                anchor_of(&ancestors()?, hint)
            }
        };
        Ok(Surroundings { host, anchor, context })
    }
}

/// The host that the environment names, and its conversation. An agent that was started inside of another one has
/// the marks of both: then nobody can tell whose conversation it is.
fn marked(var: impl Fn(&str) -> Option<String>) -> (Option<Host>, String) {
    let mut found = MARKS.iter().filter(|(_, mark, _)| var(mark).is_some());
    let (Some((host, _, conversation)), None) = (found.next(), found.next()) else {
        return (None, String::new());
    };
    let conversation = conversation.and_then(var);
    (Some(*host), conversation.map(|id| host.context(&id)).unwrap_or_default())
}

/// The process whose life bounds the session: the one that the host names if it is among the ancestors, else the
/// nearest that is no wrapper. The shell that a person types into is as good as a host.
fn anchor_of(ancestors: &[Ancestor], hint: Option<u32>) -> u32 {
    if let Some(named) = ancestors.iter().find(|one| Some(one.pid) == hint) {
        return named.pid;
    }
    // Whoever is adopted by process 1 has lost its host.
    let own = |one: &&Ancestor| one.pid != 1;
    let found = ancestors.iter().filter(own).find(|one| one.leads_terminal || !is_wrapper(one));
    found.or(ancestors.first()).map_or(1, |one| one.pid)
}

fn is_wrapper(one: &Ancestor) -> bool {
    // `npx` names itself after what it runs.
    let named = |name: &str| WRAPPERS.contains(&name) || name.starts_with("npm ") || name.starts_with("npx ");
    named(&one.name) || named(&one.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(names: &[(&str, &str)]) -> Vec<Ancestor> {
        let one = |(index, (name, executable)): (usize, &(&str, &str))| Ancestor {
            pid: 100 - u32::try_from(index).expect("few"),
            name: name.trim_end_matches('*').to_owned(),
            executable: (*executable).to_owned(),
            leads_terminal: name.ends_with('*'),
        };
        names.iter().enumerate().map(one).collect()
    }

    #[test]
    fn the_anchor_is_the_host_and_no_wrapper() {
        for (names, hint, anchor) in [
            (&[("claude", "claude"), ("bash*", "bash")][..], None, 100),
            (&[("sh", "dash"), ("claude", "node"), ("bash*", "bash")], None, 99),
            (&[("start-server", "bash"), ("npm exec outla", "node"), ("codex", "codex")], None, 98),
            // A person in a terminal.
            (&[("bash*", "bash"), ("sshd", "sshd")], None, 100),
            (&[("timeout", "timeout"), ("zsh*", "zsh"), ("tmux", "tmux")], None, 99),
            // The host names itself, or a process that has nothing to do with this one.
            (&[("node", "node"), ("opencode", "opencode")], Some(99), 99),
            (&[("node", "node"), ("opencode", "opencode")], Some(7), 100),
            // Nothing but wrappers on the way to process 1.
            (&[("sh", "dash"), ("sh", "dash")], None, 100),
            (&[], None, 1),
        ] {
            assert_eq!(anchor_of(&line(names), hint), anchor, "{names:?}");
        }
    }

    #[test]
    fn a_host_says_who_it_is() {
        let vars = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> = set.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            marked(move |key| set.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()))
        };
        let claude = [("CLAUDECODE", "1"), ("CLAUDE_CODE_SESSION_ID", "abc")];
        assert_eq!(vars(&claude), (Some(Host::Claude), "claude:abc".to_owned()));
        assert_eq!(vars(&[("GEMINI_CLI", "1")]), (Some(Host::Gemini), String::new()));
        assert_eq!(vars(&[]), (None, String::new()));
        // opencode that was started from the shell of Claude Code.
        assert_eq!(vars(&[("OPENCODE", "1"), claude[0], claude[1]]), (None, String::new()));
    }
}
