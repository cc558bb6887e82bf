//! The words of a shell line.

/// A line that was understood.
#[derive(Debug, Default)]
pub struct Line {
    /// All that it runs, also in substitutions.
    pub commands: Vec<Command>,
    /// Variables that its expansions set (`${A:=b}`).
    pub sets: Vec<String>,
    /// Whether anything in it reads what comes from elsewhere: there is a pipe or an input that is redirected.
    pub feeds: bool,
}

/// The words between two operators, without redirections.
#[derive(Debug, Default)]
pub struct Command {
    /// The words.
    pub words: Vec<Word>,
    /// How many words stood before the first redirection.
    pub redirected: Option<usize>,
}

/// How surely the text of a word is what the command gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Surety {
    /// It is.
    #[default]
    Plain,
    /// It is one word, of which a part is put there by the shell.
    Expands,
    /// It may become any number of words.
    Splits,
}

/// A word.
#[derive(Clone, Debug, Default)]
pub struct Word {
    /// Its text without quotes; a `$` stands for what is put there by the shell.
    pub text: String,
    /// Whether any of it is quoted, so that it is no word of the shell's grammar.
    pub quoted: bool,
    /// How surely it has this text.
    pub surety: Surety,
    /// How many bytes of the text, from its beginning, are neither quoted nor put there by the shell.
    bare: usize,
}

impl Word {
    /// A word that no shell reads.
    pub fn given(text: String) -> Word {
        Word { text, quoted: true, ..Word::default() }
    }

    /// The variable that it sets where it stands before a command.
    pub fn assigned(&self) -> Option<&str> {
        let (name, _) = self.text[..self.bare].split_once('=')?;
        let name = name.strip_suffix('+').unwrap_or(name);
        is_name(name).then_some(name)
    }

    /// Whether nothing was read.
    pub fn is_nothing(&self) -> bool {
        self.text.is_empty() && !self.quoted
    }

    /// Whether all of it is neither quoted nor put there by the shell.
    pub fn is_all_bare(&self) -> bool {
        self.bare == self.text.len()
    }

    /// Adds what is neither quoted nor put there by the shell.
    pub fn bare(&mut self, c: char) {
        let is_bare = self.bare == self.text.len() && !self.quoted;
        self.text.push(c);
        if is_bare {
            self.bare = self.text.len();
        }
    }

    /// Adds what the shell puts there.
    pub fn expands(&mut self, quoted: bool) {
        self.at_least(if quoted { Surety::Expands } else { Surety::Splits });
        self.text.push('$');
    }

    /// Makes it no surer than this.
    pub fn at_least(&mut self, surety: Surety) {
        self.surety = self.surety.max(surety);
    }
}

/// Whether this is the name of a variable.
pub fn is_name(text: &str) -> bool {
    text.starts_with(is_name_start) && text.chars().all(is_name_part)
}

/// Whether the name of a variable can begin with it.
pub fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

/// Whether it can stand in the name of a variable.
pub fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
