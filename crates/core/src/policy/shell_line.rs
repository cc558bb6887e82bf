//! Reads a shell line as sh and bash do (POSIX, Shell Command Language, 2.3), and nothing that they may read in different
//! ways: what is not surely understood is an error.

use super::shell_words::{Command, Line, Surety, Word, is_name_part, is_name_start};

/// Words of the shell behind which a command stands.
pub const BEFORE_COMMANDS: [&str; 9] = ["if", "then", "else", "elif", "do", "while", "until", "!", "{"];

/// How deep substitutions may stand in each other.
const DEEPEST: usize = 30;

/// What the line says, or what of it is not understood.
pub fn read(text: &str) -> Result<Line, String> {
    let mut reader = Reader::over(text, 0);
    reader.commands(false)?;
    Ok(reader.line)
}

struct Reader {
    text: Vec<char>,
    at: usize,
    line: Line,
    depth: usize,
    /// Here-documents whose text stands behind the next end of line.
    pending: Vec<Document>,
}

struct Document {
    delimiter: String,
    tabs: bool,
    quoted: bool,
}

fn fails<T>(what: &str) -> Result<T, String> {
    Err(format!("{what}, which it does not understand"))
}

fn unended<T>(what: &str) -> Result<T, String> {
    Err(format!("{what} that does not end"))
}

impl Reader {
    fn over(text: &str, depth: usize) -> Reader {
        Reader { text: text.chars().collect(), at: 0, line: Line::default(), depth, pending: Vec::new() }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn takes(&mut self, text: &str) -> bool {
        let is_there = text.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c));
        self.at += if is_there { text.len() } else { 0 };
        is_there
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    fn finish(&mut self, command: &mut Command) {
        self.line.commands.push(std::mem::take(command));
    }

    /// Reads commands up to the end of the text, or to the parenthesis that ends a substitution.
    fn commands(&mut self, nested: bool) -> Result<(), String> {
        let (mut command, mut groups) = (Command::default(), 0_usize);
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' => self.at += 1,
                '\\' if self.peek(1) == Some('\n') => {
                    if self.at > 0 && !matches!(self.text[self.at - 1], ' ' | '\t' | '\n') {
                        return fails("a line that is continued within a word");
                    }
                    self.at += 2;
                }
                '#' => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                '\n' => {
                    self.at += 1;
                    self.finish(&mut command);
                    for document in std::mem::take(&mut self.pending) {
                        self.document(&document)?;
                    }
                }
                ';' | '&' | '|' => {
                    self.at += 1;
                    let doubled = self.peek(0) == Some(c);
                    if doubled && c == ';' {
                        return fails("`;;`");
                    }
                    self.line.feeds |= c == '|' && !doubled;
                    self.at += usize::from(doubled || (c == '|' && self.peek(0) == Some('&')));
                    self.finish(&mut command);
                }
                '(' => {
                    let is_first = |word: &Word| !word.quoted && BEFORE_COMMANDS.contains(&word.text.as_str());
                    if !command.words.iter().all(is_first) || command.redirected.is_some() {
                        return fails("a function or a list");
                    }
                    if self.peek(1) == Some('(') {
                        return fails("`((`");
                    }
                    self.at += 1;
                    groups += 1;
                    self.finish(&mut command);
                }
                ')' => {
                    self.at += 1;
                    self.finish(&mut command);
                    if groups == 0 {
                        return if nested && self.pending.is_empty() { Ok(()) } else { fails("a `)`") };
                    }
                    groups -= 1;
                }
                '<' | '>' if self.peek(1) != Some('(') => self.redirection(&mut command)?,
                _ => {
                    let word = self.word()?;
                    let leads = matches!(self.peek(0), Some('<' | '>')) && !word.quoted;
                    if leads && word.text.starts_with('{') {
                        return fails("a descriptor with a name");
                    }
                    // A number right before a redirection is its descriptor.
                    if !(leads && word.is_all_bare() && word.text.chars().all(|c| c.is_ascii_digit())) {
                        command.words.push(word);
                    }
                }
            }
        }
        self.finish(&mut command);
        if nested || groups > 0 {
            return unended("a `(`");
        }
        if self.pending.is_empty() { Ok(()) } else { unended("a here-document") }
    }

    fn redirection(&mut self, command: &mut Command) -> Result<(), String> {
        command.redirected.get_or_insert(command.words.len());
        self.line.feeds |= self.peek(0) == Some('<');
        if self.takes("<<<") {
        } else if self.takes("<<") {
            let document = self.delimiter()?;
            self.pending.push(document);
            return Ok(());
        } else if !["<&", "<>", ">>", ">&", ">|"].iter().any(|operator| self.takes(operator)) {
            self.at += 1;
        }
        self.skip_blanks();
        if self.peek(0) == Some('#') || self.word()?.is_nothing() {
            return fails("a redirection without a file");
        }
        Ok(())
    }

    /// The word that begins here.
    fn word(&mut self) -> Result<Word, String> {
        let mut word = Word::default();
        while let Some(c) = self.peek(0) {
            match c {
                '<' | '>' if self.peek(1) == Some('(') => {
                    self.at += 2;
                    self.line.feeds = true;
                    self.substitution()?;
                    word.expands(true);
                    continue;
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                _ => self.at += 1,
            }
            match c {
                '\\' => {
                    word.quoted = true;
                    match self.peek(0) {
                        None | Some('\n') => return fails("a line that is continued within a word"),
                        Some(c) => word.text.push(c),
                    }
                    self.at += 1;
                }
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '$' | '`' => self.expansion(c, &mut word, false)?,
                c if c.is_control() || c.is_whitespace() => {
                    return fails(&format!("the character {:?} outside of quotes", c.escape_unicode().to_string()));
                }
                c => {
                    let is_alone = word.text.is_empty() && matches!(self.peek(0), None | Some(' ' | '\t' | '\n' | ';'));
                    let is_pair = c == '{' && self.peek(0) == Some('}');
                    if matches!(c, '*' | '?') || (matches!(c, '[' | '{') && !is_alone && !is_pair) {
                        word.at_least(Surety::Splits);
                    }
                    word.bare(c);
                }
            }
        }
        Ok(word)
    }

    fn single(&mut self, word: &mut Word) -> Result<(), String> {
        word.quoted = true;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '\'' => return Ok(()),
                '\n' if !self.pending.is_empty() => return fails("a quote between a here-document and its text"),
                c => word.text.push(c),
            }
        }
        unended("a quote")
    }

    fn double(&mut self, word: &mut Word) -> Result<(), String> {
        word.quoted = true;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '"' => return Ok(()),
                '\n' if !self.pending.is_empty() => return fails("a quote between a here-document and its text"),
                '\\' => {
                    match self.peek(0) {
                        None => break,
                        Some('\n') => {}
                        Some(c @ ('$' | '`' | '"' | '\\')) => word.text.push(c),
                        Some(c) => word.text.extend(['\\', c]),
                    }
                    self.at += 1;
                }
                '$' | '`' => self.expansion(c, word, true)?,
                c => word.text.push(c),
            }
        }
        unended("a quote")
    }

    /// What stands behind a `$` or a backtick.
    fn expansion(&mut self, c: char, word: &mut Word, quoted: bool) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return fails("such deep nesting");
        }
        match self.peek(0) {
            _ if c == '`' => self.backticks(word, quoted)?,
            Some('(') => {
                self.at += 1;
                if self.peek(0) == Some('(') {
                    self.arithmetic(word)?;
                } else {
                    self.substitution()?;
                    word.expands(quoted);
                }
            }
            Some('{') => self.braces(word, quoted)?,
            Some('[') => return fails("`$[`"),
            Some('\'' | '"') if !quoted => return fails("a quote of the form $'…'"),
            Some('\\') if self.peek(1) == Some('\n') => return fails("a line that is continued within a word"),
            Some('?' | '#' | '$') => {
                // A number, which is one word and no option.
                self.at += 1;
                word.quoted = true;
                word.text.push('0');
            }
            Some('@' | '*') => {
                self.at += 1;
                word.expands(false);
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '!' | '-') => {
                self.at += 1;
                word.expands(quoted);
            }
            Some(c) if is_name_start(c) => {
                self.name();
                word.expands(quoted);
            }
            _ => word.text.push('$'),
        }
        self.depth -= 1;
        Ok(())
    }

    /// Commands up to the parenthesis that closes.
    fn substitution(&mut self) -> Result<(), String> {
        if !self.pending.is_empty() {
            return fails("a substitution between a here-document and its text");
        }
        self.depth += 1;
        if self.depth > DEEPEST {
            return fails("such deep nesting");
        }
        self.commands(true)?;
        self.depth -= 1;
        Ok(())
    }

    fn backticks(&mut self, word: &mut Word, quoted: bool) -> Result<(), String> {
        let mut inner = String::new();
        loop {
            let Some(c) = self.peek(0) else { return unended("a substitution") };
            self.at += 1;
            match c {
                '`' => break,
                '\\' => return fails("a backslash between backticks"),
                '"' if quoted => return fails("a quote between backticks in a quote"),
                '\n' if !self.pending.is_empty() => return fails("backticks between a here-document and its text"),
                c => inner.push(c),
            }
        }
        word.expands(quoted);
        let mut reader = Reader::over(&inner, self.depth);
        reader.commands(false)?;
        self.take_in(reader.line);
        Ok(())
    }

    fn take_in(&mut self, line: Line) {
        self.line.commands.extend(line.commands);
        self.line.sets.extend(line.sets);
        self.line.feeds |= line.feeds;
    }

    /// A sum of numbers: what else stands in one may be a variable, and a shell runs what stands in its value.
    fn arithmetic(&mut self, word: &mut Word) -> Result<(), String> {
        let (start, mut open) = (self.at, 0_usize);
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '(' => open += 1,
                ')' if open == 1 && self.peek(0) == Some(')') => {
                    self.at += 1;
                    word.quoted = true;
                    word.text.push('0');
                    return Ok(());
                }
                ')' if open > 1 => open -= 1,
                ' ' | '+' | '-' | '*' | '/' | '%' => {}
                c if c.is_ascii_digit() => {}
                _ => break,
            }
        }
        let all: String = self.text[start..].iter().collect();
        Err(format!("\"$({all}\": arithmetic with more than numbers, which may run the value of a variable"))
    }

    fn name(&mut self) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(is_name_part) {
            self.at += 1;
        }
        self.text[start..self.at].iter().collect()
    }

    /// `${…}`, with nothing in it that quotes, reckons or runs.
    fn braces(&mut self, word: &mut Word, quoted: bool) -> Result<(), String> {
        let start = self.at - 1;
        let wrong = |reader: &Reader| {
            let text: String = reader.text[start..].iter().collect();
            fails(&format!("{text:?}: an expansion of more than a name and plain text"))
        };
        self.at += 1;
        if self.peek(0) == Some('#') && self.peek(1) != Some('}') {
            self.at += 1;
            self.name();
            word.expands(quoted);
            return if self.takes("}") { Ok(()) } else { wrong(self) };
        }
        let name = self.name();
        if name.is_empty() {
            let Some(special @ ('@' | '*' | '#' | '?' | '$' | '!' | '-')) = self.peek(0) else { return wrong(self) };
            self.at += 1;
            word.expands(quoted && !matches!(special, '@' | '*'));
            return if self.takes("}") { Ok(()) } else { wrong(self) };
        }
        word.expands(quoted);
        if self.takes("}") {
            return Ok(());
        }
        if self.peek(0) == Some(':') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            while self.peek(0).is_some_and(|c| c.is_ascii_digit() || c == ':') {
                self.at += 1;
            }
            return if self.takes("}") { Ok(()) } else { wrong(self) };
        }
        let operators = [":-", ":=", ":+", ":?", "-", "=", "+", "?", "##", "#", "%%", "%", "//", "/", "^", ","];
        let Some(operator) = operators.into_iter().find(|operator| self.takes(operator)) else { return wrong(self) };
        if operator.ends_with('=') {
            self.line.sets.push(name);
        }
        while let Some(c) = self.peek(0) {
            self.at += 1;
            match c {
                '}' => return Ok(()),
                '$' if self.peek(0).is_some_and(|c| c == '{' || is_name_start(c)) => {
                    self.expansion('$', word, quoted)?
                }
                c if c.is_alphanumeric() || " _-./:,@%+=*?~^#[]".contains(c) => {}
                _ => break,
            }
        }
        wrong(self)
    }

    fn delimiter(&mut self) -> Result<Document, String> {
        let tabs = self.takes("-");
        self.skip_blanks();
        let quote = self.peek(0).filter(|c| matches!(c, '\'' | '"'));
        self.at += usize::from(quote.is_some());
        let delimiter = self.name();
        let closes = quote.is_none_or(|quote| self.takes(&quote.to_string()));
        let ends = matches!(self.peek(0), None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '<' | '>'));
        if delimiter.is_empty() || !closes || !ends {
            return fails("a here-document whose end is not a plain word");
        }
        Ok(Document { delimiter, tabs, quoted: quote.is_some() })
    }

    /// Steps over the text of a here-document, in which only substitutions run, and those only where it is not quoted.
    fn document(&mut self, document: &Document) -> Result<(), String> {
        let mut body = String::new();
        loop {
            if self.at >= self.text.len() {
                return unended("a here-document");
            }
            let end = self.text[self.at..].iter().position(|c| *c == '\n').map_or(self.text.len(), |end| self.at + end);
            let line: String = self.text[self.at..end].iter().collect();
            self.at = (end + 1).min(self.text.len());
            let bare = if document.tabs { line.trim_start_matches('\t') } else { &line };
            if bare == document.delimiter {
                break;
            }
            if !document.quoted && line.ends_with('\\') {
                return fails("a line that is continued in a here-document");
            }
            body.push_str(&line);
            body.push('\n');
        }
        if document.quoted {
            return Ok(());
        }
        let mut reader = Reader::over(&body, self.depth);
        while let Some(c) = reader.peek(0) {
            reader.at += 1;
            match c {
                '\\' => reader.at += 1,
                '$' | '`' => reader.expansion(c, &mut Word::default(), true)?,
                _ => {}
            }
        }
        self.take_in(reader.line);
        Ok(())
    }
}
