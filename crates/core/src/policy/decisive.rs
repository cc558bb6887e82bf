//! Names of environment variables that decide what code is loaded, so that no call and no shell line may set them.

/// The names with what they decide. A name that ends with `*` stands for all that begin like it.
const DECISIVE: [(&str, &[&str]); 5] = [
    ("it decides what the dynamic loader loads", &["LD_*", "DYLD_*", "GCONV_PATH", "MALLOC_*"]),
    (
        "it decides what a shell runs when it starts",
        &["BASH_ENV", "ENV", "ZDOTDIR", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "IFS", "BASH_FUNC_*"],
    ),
    ("it decides where programs and their settings are found", &["PATH", "HOME", "XDG_CONFIG_HOME", "SHELL", "PWD"]),
    (
        "it decides what code a language loads",
        &[
            "PYTHONPATH",
            "PYTHONHOME",
            "PYTHONSTARTUP",
            "PYTHONINSPECT",
            "PYTHONUSERBASE",
            "NODE_OPTIONS",
            "NODE_PATH",
            "RUBYOPT",
            "RUBYLIB",
            "GEM_HOME",
            "GEM_PATH",
            "BUNDLE_GEMFILE",
            "PERL5OPT",
            "PERL5LIB",
            "PERLLIB",
            "PERL5DB",
            "CLASSPATH",
            "JAVA_TOOL_OPTIONS",
            "_JAVA_OPTIONS",
            "JDK_JAVA_OPTIONS",
            "LUA_PATH",
            "LUA_CPATH",
            "LUA_INIT",
            "PHPRC",
            "PHP_INI_SCAN_DIR",
            "R_PROFILE",
            "R_LIBS",
            "JULIA_LOAD_PATH",
            "GIT_EXEC_PATH",
            "GIT_SSH_COMMAND",
            "GIT_EXTERNAL_DIFF",
            "RUSTC_WRAPPER",
        ],
    ),
    ("it is a setting of outlast itself", &["OUTLAST_*"]),
];

/// Variables whose values a shell runs or reckons, or that change how it reads: of no use outside of the shell that sets
/// them (bash(1), Shell Variables).
const OF_A_SHELL: [&str; 14] = [
    "BASH_*",
    "CDPATH",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "HISTCMD",
    "LINENO",
    "OLDPWD",
    "OPTIND",
    "POSIXLY_CORRECT",
    "PS0",
    "PS1",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
];

/// What a variable of exactly this name decides in a shell line that sets it; none where it decides nothing.
#[must_use]
pub fn in_a_line(name: &str) -> Option<&'static str> {
    let of_a_shell = OF_A_SHELL.iter().any(|pattern| is_like(name, pattern));
    of_all(name).or(of_a_shell.then_some("it decides what a shell does with what follows"))
}

/// What a variable decides that a call sets for its command; none where it decides nothing. Letter case plays no part.
#[must_use]
pub fn in_a_call(name: &str) -> Option<&'static str> {
    of_all(&name.to_ascii_uppercase())
}

fn of_all(name: &str) -> Option<&'static str> {
    DECISIVE.iter().find(|(_, patterns)| patterns.iter().any(|pattern| is_like(name, pattern))).map(|(why, _)| *why)
}

fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Covers: Q8
    #[test]
    fn q8_names_that_a_call_cannot_set() {
        let all = DECISIVE.iter().flat_map(|(_, patterns)| patterns.iter());
        for name in all.clone().map(|pattern| pattern.replace('*', "X")) {
            assert!(in_a_call(&name).is_some() && in_a_line(&name).is_some(), "{name}");
            assert!(in_a_call(&name.to_ascii_lowercase()).is_some(), "{name} in lower case");
        }
        assert!(all.count() >= 45);
        for name in ["CI", "DEBUG", "MY_PATH", "PORT", "RUST_LOG", "HOMEPAGE"] {
            assert_eq!((in_a_call(name), in_a_line(name)), (None, None), "{name}");
        }
        assert_eq!((in_a_line("env"), in_a_call("RANDOM")), (None, None));
        assert!(in_a_line("RANDOM").is_some() && in_a_line("BASH_CMDS").is_some());
    }
}
