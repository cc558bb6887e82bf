//! The environment of a command: inherited, made non-interactive where nobody sits, and what was asked.

use std::ffi::OsString;

type Entries = Vec<(OsString, OsString)>;

/// Variables that name a program which would wait for somebody to turn the page.
const PAGERS: [&str; 2] = ["PAGER", "GIT_PAGER"];

/// Files that a shell would read before it runs a line (bash(1), sh(1)).
const STARTUP: [&str; 2] = ["BASH_ENV", "ENV"];

/// The environment of a command. `quiet`: nobody is there to answer or to turn a page.
pub fn of_command(inherited: Entries, quiet: bool, asked: Entries) -> Entries {
    let mut env = inherited;
    if quiet {
        make_quiet(&mut env);
    }
    for (key, value) in asked {
        set(&mut env, key, value);
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
