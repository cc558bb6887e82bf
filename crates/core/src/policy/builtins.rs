//! What the shell's own commands may be told in a line that the gate lets through: those that set variables, that run
//! other text, or that change what a name means.

use super::decisive::in_a_line;
use super::shell_words::{Surety, Word, is_name};

/// Those of which no use is understood: they run text, change what names mean, or reckon with what they are given.
const NOT_UNDERSTOOD: [&str; 27] = [
    "alias",
    "bg",
    "bind",
    "caller",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "disown",
    "enable",
    "fc",
    "fg",
    "getopts",
    "hash",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "readarray",
    "shopt",
    "suspend",
    "trap",
    "typeset",
    "unalias",
    "coproc",
];

/// Options of a shell, by their names, that do not change how it reads.
const OPTIONS: [&str; 8] = ["allexport", "errexit", "noclobber", "noglob", "nounset", "pipefail", "verbose", "xtrace"];

/// Why a command may not have these arguments; nothing is said of what is no command of the shell itself.
pub fn check(program: &str, arguments: &[Word]) -> Result<(), String> {
    match program {
        _ if NOT_UNDERSTOOD.contains(&program) => Err("it may change what the shell does with what follows".to_owned()),
        "export" | "readonly" => arguments.iter().try_for_each(|word| declared(word, &["-p", "-n", "--"])),
        "unset" => arguments.iter().try_for_each(|word| declared(word, &["-v", "-f", "--"])),
        "read" => arguments.iter().try_for_each(|word| {
            let is_number = word.text.bytes().all(|byte| byte.is_ascii_digit());
            let options = ["-r", "-s", "-rs", "-n", "-N", "-t", "-u", "-d"];
            if word.surety == Surety::Plain && is_number { Ok(()) } else { declared(word, &options) }
        }),
        "printf" => match arguments.first() {
            Some(first) if first.surety == Surety::Plain && first.text == "--" => Ok(()),
            Some(first) if first.text.starts_with(['-', '$', '*', '?', '[', '{']) => unsure(first),
            _ => Ok(()),
        },
        "wait" => arguments.iter().try_for_each(|word| {
            let is_plain = word.surety == Surety::Plain && !word.text.starts_with("-p");
            if is_plain { Ok(()) } else { unsure(word) }
        }),
        "set" => set(arguments),
        "test" | "[" => compared(arguments),
        "command" | "builtin" | "exec" => match arguments.first() {
            Some(word) if word.text.starts_with('-') && !looks_up(program, word) => unsure(word),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The command that stands in the arguments of one.
pub fn runs<'a>(program: &str, arguments: &'a [Word]) -> Option<&'a [Word]> {
    let is_wrapper = ["command", "builtin", "exec"].contains(&program);
    (is_wrapper && !arguments.first().is_some_and(|word| looks_up(program, word))).then_some(arguments)
}

/// `command -v NAME` runs nothing.
fn looks_up(program: &str, word: &Word) -> bool {
    program == "command" && word.surety == Surety::Plain && ["-v", "-V"].contains(&word.text.as_str())
}

fn unsure(word: &Word) -> Result<(), String> {
    Err(format!("it does not understand {:?} there", word.text))
}

/// A name of a variable, perhaps with its value, or one of these options.
fn declared(word: &Word, options: &[&str]) -> Result<(), String> {
    let name = word.text.split('=').next().unwrap_or_default();
    if word.surety == Surety::Plain && options.contains(&word.text.as_str()) {
        return Ok(());
    }
    if word.surety == Surety::Splits {
        return Err(format!("{:?} may become several words; quote it", word.text));
    }
    match in_a_line(name) {
        _ if !is_name(name) => unsure(word),
        Some(why) => Err(format!("{name} may not be set: {why}")),
        None => Ok(()),
    }
}

fn set(arguments: &[Word]) -> Result<(), String> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.text.strip_prefix(['-', '+']) else {
            return if word.surety == Surety::Splits || word.text.starts_with('$') { unsure(word) } else { Ok(()) };
        };
        if word.surety != Surety::Plain {
            return unsure(word);
        }
        if letters == "-" {
            return Ok(());
        }
        let others = letters.strip_suffix('o').unwrap_or(letters);
        if letters.is_empty() || !others.chars().all(|c| "aCefuvx".contains(c)) {
            return unsure(word);
        }
        if letters.ends_with('o') {
            match words.next() {
                Some(name) if name.surety == Surety::Plain && OPTIONS.contains(&name.text.as_str()) => {}
                _ => return unsure(word),
            }
        }
    }
    Ok(())
}

/// The operators of `test -v` and `test -R` reckon with what stands behind them: neither may come from an expansion.
fn compared(arguments: &[Word]) -> Result<(), String> {
    if let Some(word) = arguments.iter().find(|word| word.surety == Surety::Splits) {
        return Err(format!("{:?} may become several words; quote it", word.text));
    }
    for pair in arguments.windows(2) {
        let asks = pair[0].surety != Surety::Plain || ["-v", "-R"].contains(&pair[0].text.as_str());
        if asks && (pair[1].surety != Surety::Plain || pair[1].text.contains('[')) {
            return unsure(&pair[1]);
        }
    }
    Ok(())
}
