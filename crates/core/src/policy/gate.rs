//! The command gate: which shell lines are started, by the programs that stand in them.
//!
//! It is no sandbox. It reads a line as a shell would, and refuses what it does not understand.

use serde::Deserialize;

use super::builtins;
use super::decisive::in_a_line;
use super::shell_line::{self, BEFORE_COMMANDS};
use super::shell_words::{Command, Surety, Word, is_name};
use crate::request::OsText;

/// What the gate does with a line that is not allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing: no line is looked at.
    #[default]
    Off,
    /// It runs, and the answer says so.
    Warn,
    /// It does not run.
    Enforce,
}

/// The gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gate {
    /// What it does.
    pub mode: Mode,
    /// Programs that are allowed, as they are invoked.
    pub allow: Vec<String>,
    /// Whether the programs of [`PRESET`] are allowed too.
    pub preset: bool,
    /// Whether a pipe into an interpreter without a script is refused, although the interpreter is allowed.
    pub strict: bool,
}

/// Programs that read, build and test, with spaces between them.
pub const PRESET: &str = "\
    : [ ar arch as awk b2sum base32 base64 basename bat bc bison brew bun bunzip2 bzip2 c++ cal cargo cat cc cd \
    chmod cksum clang clang++ clang-format clear cmake cmp column comm composer cp csplit ctest cut dart date dc \
    df diff diff3 dirname dotnet du echo egrep elixir eslint exa exit expand export expr eza factor false fd \
    fgrep file find flake8 flex fmt fold free g++ gcc gdb getconf getent gh git go gofmt gradle grep groups \
    gunzip gzip head help hexdump hostname htop hyperfine iconv id install isort java javac jest join jq just \
    kotlinc ld ldd less ln locale ls lsblk lsof lua make man md5sum meson mix mkdir mktemp mv mvn mypy nasm \
    ninja nl nm node npm nproc npx objdump od paste patch pathchk perl pgrep php pip pip3 pkg-config pnpm poetry \
    popd pr prettier printenv printf ps ptx pushd pwd pytest python python3 ranlib read readelf readlink \
    realpath return rg rsync rubocop ruby ruff rustc rustfmt rustup sed seq set sha1sum sha256sum shellcheck \
    shellharden shuf sleep sort split sqlite3 stat strings strip stty sum swift sync tac tail tar tee test touch \
    tr true tsc uname uniq wc";

/// Programs that run what comes in where they are given no script, without the numbers of their versions.
const INTERPRETERS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "fish", "python", "perl", "ruby", "node", "php", "lua"];

/// Words of the shell that end something.
const ENDS: [&str; 4] = ["fi", "done", "}", "esac"];
/// Words of the shell behind which it reads in a way that is not understood here.
const NOT_UNDERSTOOD: [&str; 6] = ["case", "function", "select", "coproc", "[[", "time"];

/// Shells whose lines are read.
const SHELLS: [&str; 3] = ["sh", "bash", "dash"];

impl Gate {
    /// What is said beside the answer, or why nothing is started.
    pub fn admit(&self, argv: &[OsText]) -> Result<Option<String>, String> {
        if self.mode == Mode::Off {
            return Ok(None);
        }
        let checked = match self.shell_line(argv) {
            Some(line) => self.line(line),
            None => self.listed(&argv.iter().map(|word| Word::given(word.lossy())).collect::<Vec<_>>()),
        };
        match (checked, self.mode) {
            (Ok(()), _) => Ok(None),
            (Err(why), Mode::Enforce) => Err(format!(
                "the command gate does not allow {why}; nothing ran, and trying it again changes nothing; \
                     a person can add it to `allow` below `[gate]` in the file that OUTLAST_POLICY names"
            )),
            (Err(why), _) => Ok(Some(format!("the command gate would not allow {why}; it only warns here"))),
        }
    }

    /// The line that a shell is given with `-c`: a shell by its name, or by a path that is in the list.
    fn shell_line<'a>(&self, argv: &'a [OsText]) -> Option<&'a OsText> {
        let [shell, option, line, ..] = argv else { return None };
        let shell = shell.lossy();
        let is_shell = SHELLS.contains(&shell.as_str()) || (is_shell_at(&shell) && self.lists(&shell));
        (is_shell && option.0 == b"-c").then_some(line)
    }

    fn lists(&self, program: &str) -> bool {
        self.allow.iter().any(|name| name == program) || (self.preset && PRESET.split(' ').any(|name| name == program))
    }

    fn line(&self, line: &OsText) -> Result<(), String> {
        let Ok(text) = std::str::from_utf8(&line.0) else {
            return Err("a line that is not UTF-8, which it does not understand".to_owned());
        };
        let line = shell_line::read(text)?;
        for name in &line.sets {
            may_be_set(name, &format!("\"${{{name}=…}}\""))?;
        }
        line.commands.iter().try_for_each(|command| self.segment(command, line.feeds))
    }

    fn segment(&self, segment: &Command, feeds: bool) -> Result<(), String> {
        let mut words = segment.words.as_slice();
        let shown = shown(words);
        let not_understood = || Err(format!("{shown}, which it does not understand"));
        // Behind a redirection or an assignment the words of the shell are ordinary ones.
        while let Some((first, rest)) = words.split_first() {
            let read = segment.words.len() - words.len();
            let is_a_word_of_the_shell = |list: &[&str]| !first.quoted && list.contains(&first.text.as_str());
            let leads = is_a_word_of_the_shell(&BEFORE_COMMANDS);
            let ends = is_a_word_of_the_shell(&ENDS);
            let repeats = is_a_word_of_the_shell(&["for"]);
            if is_a_word_of_the_shell(&NOT_UNDERSTOOD) {
                return not_understood();
            }
            if !(leads || ends || repeats) {
                break;
            }
            if segment.redirected.is_some_and(|at| at <= read) || (ends && !rest.is_empty()) {
                return not_understood();
            }
            if repeats {
                return match rest {
                    [name, rest @ ..]
                        if is_name(&name.text)
                            && !name.quoted
                            && rest.first().is_none_or(|word| word.text == "in" && !word.quoted) =>
                    {
                        may_be_set(&name.text, &shown)
                    }
                    _ => not_understood(),
                };
            }
            words = rest;
        }
        let mut assigns = false;
        while let Some((first, rest)) = words.split_first() {
            let Some(name) = first.assigned() else { break };
            may_be_set(name, &shown)?;
            (words, assigns) = (rest, true);
        }
        let Some(program) = words.first() else { return Ok(()) };
        let is_a_word_of_the_shell = [&BEFORE_COMMANDS[..], &ENDS, &["for"]].concat().contains(&program.text.as_str());
        if assigns && is_a_word_of_the_shell {
            return not_understood();
        }
        self.command(words, feeds)
    }

    /// A command of a line, and those that it runs: as many as the line is long, so that neither the stack nor what is
    /// kept of each grows with them.
    fn command(&self, mut words: &[Word], feeds: bool) -> Result<(), String> {
        while let Some((program, arguments)) = words.split_first() {
            if program.surety != Surety::Plain {
                return Err(format!("{}: what it runs is known only when it runs", shown(words)));
            }
            self.listed(words)?;
            builtins::check(&program.text, arguments).map_err(|why| format!("{}: {why}", shown(words)))?;
            if self.strict && feeds && is_interpreter(&program.text) && !has_script(&program.text, arguments) {
                return Err(format!("{}: it would run whatever is piped into it", shown(words)));
            }
            let Some(inner) = builtins::runs(&program.text, arguments) else { return Ok(()) };
            words = inner;
        }
        Ok(())
    }

    fn listed(&self, words: &[Word]) -> Result<(), String> {
        let Some(program) = words.first().map(|word| &word.text) else { return Ok(()) };
        if ["eval", "source", "."].contains(&program.as_str()) {
            return Err(format!("{}: {program} runs text that it cannot look at", shown(words)));
        }
        if self.lists(program) {
            return Ok(());
        }
        Err(format!("{}: {program:?} is not in its list", shown(words)))
    }
}

fn shown(words: &[Word]) -> String {
    format!("{:?}", words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "))
}

fn may_be_set(name: &str, shown: &str) -> Result<(), String> {
    match in_a_line(name) {
        None => Ok(()),
        Some(why) => Err(format!("{shown}: {name} may not be set: {why}")),
    }
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

fn is_shell_at(program: &str) -> bool {
    SHELLS.contains(&file_name(program))
}

fn is_interpreter(program: &str) -> bool {
    INTERPRETERS.contains(&interpreter(program))
}

/// The name of an interpreter without its version.
fn interpreter(program: &str) -> &str {
    file_name(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Whether an interpreter is surely given what it runs: by an option with a plain text behind it, or by a plain file that
/// is none of the names of what comes in.
fn has_script(program: &str, arguments: &[Word]) -> bool {
    let Some(first) = arguments.first() else { return false };
    if first.surety != Surety::Plain {
        return false;
    }
    let option = first.text.as_str();
    let says = match interpreter(program) {
        "python" => ["-c", "-m"].contains(&option),
        "perl" | "ruby" => ["-e", "-ne", "-pe", "-lne", "-lpe"].contains(&option),
        "node" => ["-e", "-p"].contains(&option),
        "php" => option == "-r",
        "lua" => option == "-e",
        _ => option == "-c",
    };
    if says {
        return arguments.get(1).is_some_and(|text| text.surety == Surety::Plain);
    }
    if arguments.len() == 1 && ["--version", "--help"].contains(&option) {
        return true;
    }
    let names_input =
        |part: &str| ["", "dev", "proc", "stdin"].contains(&part) || part.bytes().all(|b| b.is_ascii_digit());
    let is_option = option.starts_with(['-', '+']);
    !is_option && !option.trim_start_matches('/').split('/').any(names_input)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
