//! The environment of a command: inherited, made non-interactive where nobody sits, and what was asked.

use std::ffi::OsString;

type Entries = Vec<(OsString, OsString)>;

/// Variables that name a program which would wait for somebody to turn the page.
const PAGERS: [&str; 2] = ["PAGER", "GIT_PAGER"];

/// Files that a shell would read before it runs a line (bash(1), sh(1)).
const STARTUP: [&str; 2] = ["BASH_ENV", "ENV"];

/// Keys with which an agent host speaks to its model. A host hands them on to what it starts; a command that a model
/// asked for has no need of them. Everything else is inherited, because a person's commands need their tokens.
pub const MODEL_KEYS: [&str; 17] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "CURSOR_API_KEY",
    "DASHSCOPE_API_KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "QWEN_API_KEY",
    "XAI_API_KEY",
];

/// outlast's own token for HTTP, which no command is handed.
const OWN_TOKEN: &str = "OUTLAST_TOKEN";

/// The environment that commands of an agent host inherit: without the keys of its model, but for those that are named
/// in `kept`, and made non-interactive.
pub fn of_agent(inherited: Entries, kept: &[String]) -> Entries {
    let mut env = inherited;
    env.retain(|(name, _)| {
        let keys = MODEL_KEYS.iter().chain([&OWN_TOKEN]);
        kept.iter().any(|kept| name == kept.as_str()) || !keys.into_iter().any(|key| name == key)
    });
    make_quiet(&mut env);
    env
}

/// The same with what a call has asked for, which comes last.
pub fn with_entries(mut env: Entries, asked: Entries) -> Entries {
    for (key, value) in asked {
        set(&mut env, key, value);
    }
    env
}

/// The environment of a command. `quiet`: nobody is there to answer or to turn a page.
pub fn of_command(inherited: Entries, quiet: bool, asked: Entries) -> Entries {
    let mut env = inherited;
    if quiet {
        make_quiet(&mut env);
    }
    with_entries(env, asked)
}

/// The environment of a command with a terminal, which programs take for one of this name where none was named.
pub fn for_terminal(mut env: Entries) -> Entries {
    if value(&env, "TERM").is_none() {
        set(&mut env, "TERM".into(), "xterm-256color".into());
    }
    env
}

fn make_quiet(env: &mut Entries) {
    for pager in PAGERS {
        if value(env, pager).is_none() {
            set(env, pager.into(), "cat".into());
        }
    }
    set(env, "GIT_TERMINAL_PROMPT".into(), "0".into());
    env.retain(|(key, _)| !STARTUP.iter().any(|name| key == name));
    // The order in which locale(7) looks; LC_ALL stands above anything that could be set here.
    if value(env, "LC_ALL").is_none() {
        match value(env, "LC_CTYPE").or_else(|| value(env, "LANG")) {
            None => set(env, "LANG".into(), "C.UTF-8".into()),
            Some(locale) if !is_utf8(&locale) => set(env, "LC_CTYPE".into(), "C.UTF-8".into()),
            Some(_) => {}
        }
    }
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

fn value(env: &Entries, key: &str) -> Option<String> {
    let found = env.iter().find(|(name, _)| name == key).map(|(_, value)| value.to_string_lossy().into_owned());
    found.filter(|value| !value.is_empty())
}

fn set(env: &mut Entries, key: OsString, value: OsString) {
    env.retain(|(name, _)| *name != key);
    env.push((key, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(inherited: &[(&str, &str)], quiet: bool, asked: &[(&str, &str)]) -> Entries {
        let entries = |list: &[(&str, &str)]| list.iter().map(|(key, value)| (key.into(), value.into())).collect();
        of_command(entries(inherited), quiet, entries(asked))
    }

    #[test]
    fn an_agents_commands_do_not_get_the_keys_of_its_model() {
        let entries = |list: &[(&str, &str)]| list.iter().map(|(key, value)| (key.into(), value.into())).collect();
        let host = entries(&[("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "b"), ("GITHUB_TOKEN", "c")]);
        let env = of_agent(host, &["OPENAI_API_KEY".to_owned()]);
        assert_eq!(value(&env, "ANTHROPIC_API_KEY"), None);
        assert_eq!(value(&env, "OPENAI_API_KEY").as_deref(), Some("b"), "it was named");
        assert_eq!(value(&env, "GITHUB_TOKEN").as_deref(), Some("c"), "a person's own");
        assert_eq!(value(&env, "PAGER").as_deref(), Some("cat"));
    }

    /// Covers: Q6
    #[test]
    fn q6_the_environment_is_made_non_interactive() {
        type Row = (&'static [(&'static str, &'static str)], &'static str, Option<&'static str>);
        let rows: [Row; 12] = [
            (&[], "PAGER", Some("cat")),
            (&[], "GIT_PAGER", Some("cat")),
            (&[("PAGER", "more")], "PAGER", Some("more")),
            (&[("GIT_TERMINAL_PROMPT", "1")], "GIT_TERMINAL_PROMPT", Some("0")),
            (&[("BASH_ENV", "/x"), ("ENV", "/y")], "BASH_ENV", None),
            (&[("BASH_ENV", "/x"), ("ENV", "/y")], "ENV", None),
            (&[], "LANG", Some("C.UTF-8")),
            (&[("LC_ALL", "C")], "LC_CTYPE", None),
            (&[("LC_ALL", "C")], "LC_ALL", Some("C")),
            (&[("LANG", "POSIX")], "LC_CTYPE", Some("C.UTF-8")),
            (&[("LANG", "de_DE.UTF-8")], "LC_CTYPE", None),
            (&[("CLAUDE_SESSION", "7")], "CLAUDE_SESSION", Some("7")),
        ];
        for (inherited, key, wanted) in rows {
            assert_eq!(value(&made(inherited, true, &[]), key).as_deref(), wanted, "{inherited:?} {key}");
        }
        let asked = made(&[("PAGER", "more")], true, &[("PAGER", "less"), ("BASH_ENV", "/z")]);
        assert_eq!(value(&asked, "PAGER").as_deref(), Some("less"));
        assert_eq!(value(&asked, "BASH_ENV").as_deref(), Some("/z"));
        assert_eq!(made(&[("LANG", "C")], false, &[]), [("LANG".into(), "C".into())]);
    }
}
