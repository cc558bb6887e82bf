//! The command gate: which shell lines are started, by the programs that stand in them.
//!
//! It is no sandbox. It reads a line as a shell would, and refuses what it does not understand.

use serde::Deserialize;

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

/// Programs that run what comes in where they are given no script.
const INTERPRETERS: [&str; 13] =
    ["sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "perl", "ruby", "node", "php", "lua"];

/// Words of the shell behind which a command stands.
const BEFORE_COMMANDS: [&str; 9] = ["if", "then", "else", "elif", "do", "while", "until", "!", "{"];
/// Words of the shell that end something.
const ENDS: [&str; 4] = ["fi", "done", "}", "esac"];

/// Variables that decide what a name means.
const DECISIVE: [&str; 6] = ["PATH", "BASH_ENV", "ENV", "IFS", "SHELLOPTS", "PROMPT_COMMAND"];

impl Gate {
    /// What is said beside the answer, or why nothing is started.
    pub fn admit(&self, argv: &[OsText]) -> Result<Option<String>, String> {
        if self.mode == Mode::Off {
            return Ok(None);
        }
        let checked = match shell_line(argv) {
            Some(line) => self.line(&line),
            None => self.command(&argv.iter().map(OsText::lossy).collect::<Vec<_>>(), false),
        };
        match (checked, self.mode) {
            (Ok(()), _) => Ok(None),
            (Err(why), Mode::Enforce) => {
                Err(format!("the command gate does not allow {why}; nothing ran, and trying it again changes nothing"))
            }
            (Err(why), _) => Ok(Some(format!("the command gate would not allow {why}; it only warns here"))),
        }
    }

    fn line(&self, line: &str) -> Result<(), String> {
        let mut reader = Reader { text: line.chars().collect(), at: 0, segments: Vec::new(), inner: Vec::new() };
        reader.read()?;
        for segment in &reader.segments {
            self.segment(segment)?;
        }
        reader.inner.iter().try_for_each(|inner| self.line(inner))
    }

    fn segment(&self, segment: &Segment) -> Result<(), String> {
        let mut words = segment.words.as_slice();
        let shown =
            || format!("{:?}", segment.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "));
        loop {
            let Some((first, rest)) = words.split_first() else { return Ok(()) };
            if !first.quoted && BEFORE_COMMANDS.contains(&first.text.as_str()) {
                words = rest;
                continue;
            }
            if !first.quoted && ENDS.contains(&first.text.as_str()) {
                return if rest.is_empty() {
                    Ok(())
                } else {
                    Err(format!("{}, which it does not understand", shown()))
                };
            }
            if !first.quoted && first.text == "for" {
                return Ok(());
            }
            if !first.quoted && ["case", "function", "select", "coproc", "[["].contains(&first.text.as_str()) {
                return Err(format!("{}, which it does not understand", shown()));
            }
            match first.assigned() {
                Some(name) if DECISIVE.contains(&name) || name.starts_with("LD_") => {
                    return Err(format!("{}: {name} decides what is run", shown()));
                }
                Some(_) => words = rest,
                None => break,
            }
        }
        if words[0].expands {
            return Err(format!("{}: what it runs is known only when it runs", shown()));
        }
        let words: Vec<String> = words.iter().map(|word| word.text.clone()).collect();
        self.command(&words, segment.piped)
    }

    fn command(&self, words: &[String], piped: bool) -> Result<(), String> {
        let shown = format!("{:?}", words.join(" "));
        let Some(program) = words.first() else { return Ok(()) };
        if ["eval", "source", "."].contains(&program.as_str()) {
            return Err(format!("{shown}: {program} runs text that it cannot look at"));
        }
        let listed = self.allow.contains(program) || (self.preset && PRESET.split(' ').any(|name| name == program));
        if !listed {
            return Err(format!("{shown}: {program:?} is not in its list"));
        }
        let bare = words[1..].iter().all(|word| word.starts_with('-') && word != "-c" && word != "-e" && word != "-m");
        if self.strict && piped && bare && INTERPRETERS.contains(&program.as_str()) {
            return Err(format!("{shown}: it would run whatever is piped into it"));
        }
        Ok(())
    }
}

/// The line that a shell is given with `-c`.
fn shell_line(argv: &[OsText]) -> Option<String> {
    let [shell, option, line, ..] = argv else { return None };
    let shell = shell.lossy();
    let is_shell = ["sh", "bash", "dash", "zsh", "ksh"].contains(&shell.rsplit('/').next().unwrap_or_default());
    (is_shell && option.0 == b"-c").then(|| line.lossy())
}

#[derive(Debug, Default)]
struct Segment {
    words: Vec<Word>,
    /// Whether a pipe leads into it.
    piped: bool,
}

#[derive(Debug, Default)]
struct Word {
    text: String,
    quoted: bool,
    /// Whether a part of it is put there by the shell.
    expands: bool,
}

impl Word {
    /// The variable that it sets.
    fn assigned(&self) -> Option<&str> {
        let (name, _) = self.text.split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.starts_with(|c: char| c.is_ascii_digit());
        (is_name && !name.is_empty()).then_some(name)
    }
}

/// Reads a line as a shell does (POSIX, Shell Command Language, 2.3).
struct Reader {
    text: Vec<char>,
    at: usize,
    segments: Vec<Segment>,
    /// What stands in substitutions, which runs as well.
    inner: Vec<String>,
}

impl Reader {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn read(&mut self) -> Result<(), String> {
        let (mut segment, mut word): (Segment, Option<Word>) = (Segment::default(), None);
        let mut documents: Vec<(String, bool, bool)> = Vec::new();
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '\\' if self.peek(0) == Some('\n') => self.at += 1,
                '\\' => {
                    let word = word.get_or_insert_default();
                    word.quoted = true;
                    word.text.extend(self.peek(0));
                    self.at += 1;
                }
                '\'' => self.single(word.get_or_insert_default())?,
                '"' => self.double(word.get_or_insert_default())?,
                '$' | '`' => self.expansion(c, word.get_or_insert_default())?,
                '#' if word.is_none() => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                '<' if self.peek(0) == Some('<') && self.peek(1) != Some('<') => {
                    segment.words.extend(word.take());
                    self.at += 1;
                    documents.push(self.delimiter()?);
                }
                '<' | '>' if self.peek(0) == Some('(') => {
                    self.at += 1;
                    let inner = self.until_closed()?;
                    self.inner.push(inner);
                    word.get_or_insert_default().text.push_str("<()");
                }
                '<' | '>' => {
                    // The file behind it is no command; a number before it is its descriptor.
                    if word.as_ref().is_some_and(|word| !word.text.chars().all(|c| c.is_ascii_digit())) {
                        segment.words.extend(word.take());
                    }
                    word = None;
                    while self.peek(0).is_some_and(|c| matches!(c, '<' | '>' | '&' | '|')) {
                        self.at += 1;
                    }
                    self.skip_target()?;
                }
                ' ' | '\t' | '\r' => segment.words.extend(word.take()),
                '(' if word.is_some() => return Err("a function, which it does not understand".to_owned()),
                ';' | '&' | '|' | '\n' | '(' | ')' | '\u{2028}' | '\u{2029}' | '\u{85}' => {
                    segment.words.extend(word.take());
                    let doubled = self.peek(0) == Some(c) && matches!(c, '&' | '|');
                    self.at += usize::from(doubled);
                    let piped = c == '|' && !doubled;
                    self.at += usize::from(piped && self.peek(0) == Some('&'));
                    self.segments.push(std::mem::replace(&mut segment, Segment { words: Vec::new(), piped }));
                    if c == '\n' {
                        for (delimiter, tabs, quoted) in std::mem::take(&mut documents) {
                            self.document(&delimiter, tabs, quoted)?;
                        }
                    }
                }
                c => word.get_or_insert_default().text.push(c),
            }
        }
        segment.words.extend(word.take());
        self.segments.push(segment);
        Ok(())
    }

    fn single(&mut self, word: &mut Word) -> Result<(), String> {
        word.quoted = true;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            if c == '\'' {
                return Ok(());
            }
            word.text.push(c);
        }
        Err("a quote that does not end".to_owned())
    }

    fn double(&mut self, word: &mut Word) -> Result<(), String> {
        word.quoted = true;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '"' => return Ok(()),
                '\\' => {
                    word.text.extend(self.peek(0));
                    self.at += 1;
                }
                '$' | '`' => self.expansion(c, word)?,
                c => word.text.push(c),
            }
        }
        Err("a quote that does not end".to_owned())
    }

    fn expansion(&mut self, c: char, word: &mut Word) -> Result<(), String> {
        match (c, self.peek(0)) {
            ('`', _) => {
                let mut inner = String::new();
                loop {
                    let Some(c) = self.peek(0) else { return Err("a substitution that does not end".to_owned()) };
                    self.at += 1;
                    match c {
                        '`' => break,
                        '\\' => {
                            inner.extend(self.peek(0));
                            self.at += 1;
                        }
                        c => inner.push(c),
                    }
                }
                self.inner.push(inner);
            }
            (_, Some('(')) => {
                self.at += 1;
                let inner = self.until_closed()?;
                match inner.strip_prefix('(') {
                    // What is reckoned is no command, but a substitution inside of it is one.
                    Some(sum) => self.substitutions(sum)?,
                    None => self.inner.push(inner),
                }
            }
            (_, Some('\'')) => return Err("a quote of the form $'…', which it does not understand".to_owned()),
            (_, Some('{')) => {
                let mut depth = 0;
                loop {
                    let Some(c) = self.peek(0) else { return Err("an expansion that does not end".to_owned()) };
                    self.at += 1;
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        '$' if self.peek(0) == Some('(') => self.expansion('$', word)?,
                        '`' => self.expansion('`', word)?,
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            _ => {}
        }
        word.expands = true;
        word.text.push('$');
        Ok(())
    }

    /// What stands up to the parenthesis that closes the one before.
    fn until_closed(&mut self) -> Result<String, String> {
        let (start, mut depth, mut quote) = (self.at, 1_u32, None);
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match (quote, c) {
                (Some('\''), '\'') | (Some('"'), '"') => quote = None,
                (Some('\''), _) => {}
                (_, '\\') => self.at += 1,
                (None, '\'' | '"') => quote = Some(c),
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Ok(self.text[start..self.at - 1].iter().collect());
            }
        }
        Err("a substitution that does not end".to_owned())
    }

    /// Takes the substitutions out of text in which nothing else runs.
    fn substitutions(&mut self, text: &str) -> Result<(), String> {
        let text = text.replace('"', "").chars().chain(['"']).collect();
        let mut reader = Reader { text, at: 0, segments: Vec::new(), inner: Vec::new() };
        reader.double(&mut Word::default())?;
        self.inner.append(&mut reader.inner);
        Ok(())
    }

    fn skip_target(&mut self) -> Result<(), String> {
        while self.peek(0).is_some_and(|c| matches!(c, ' ' | '\t')) {
            self.at += 1;
        }
        let mut word = Word::default();
        while let Some(c) =
            self.peek(0).filter(|c| !matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'))
        {
            self.at += 1;
            match c {
                '\\' => self.at += 1,
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '$' | '`' => self.expansion(c, &mut word)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The delimiter of a here-document, whether tabs before it count, and whether its text is taken as it stands.
    fn delimiter(&mut self) -> Result<(String, bool, bool), String> {
        let tabs = self.peek(0) == Some('-');
        self.at += usize::from(tabs);
        while self.peek(0).is_some_and(|c| matches!(c, ' ' | '\t')) {
            self.at += 1;
        }
        let mut word = Word::default();
        while let Some(c) =
            self.peek(0).filter(|c| !matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'))
        {
            self.at += 1;
            match c {
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '\\' => {
                    word.quoted = true;
                    word.text.extend(self.peek(0));
                    self.at += 1;
                }
                c => word.text.push(c),
            }
        }
        Ok((word.text, tabs, word.quoted))
    }

    /// Steps over the text of a here-document, in which only substitutions run, and those only where it is not quoted.
    fn document(&mut self, delimiter: &str, tabs: bool, quoted: bool) -> Result<(), String> {
        let mut body = String::new();
        while self.at < self.text.len() {
            let end = self.text[self.at..].iter().position(|c| *c == '\n').map_or(self.text.len(), |end| self.at + end);
            let line: String = self.text[self.at..end].iter().collect();
            self.at = (end + 1).min(self.text.len());
            let bare = if tabs { line.trim_start_matches('\t') } else { &line };
            if bare == delimiter {
                break;
            }
            body.push_str(&line);
            body.push('\n');
        }
        if quoted || !body.contains(['$', '`']) {
            return Ok(());
        }
        self.substitutions(&body)
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
