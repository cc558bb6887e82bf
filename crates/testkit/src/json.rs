//! A printed JSON object, read by pointers such as `/end/kind`, with panics that show the whole object.

use serde_json::Value;

/// One JSON value that was printed by outlast or read from one of its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Json(pub Value);

impl Json {
    /// Parses a text.
    ///
    /// # Panics
    /// When it is not one JSON value.
    pub fn parse(text: &str) -> Json {
        Json(serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON ({error}): {text:?}")))
    }

    /// The value at a JSON pointer (RFC 6901).
    ///
    /// # Panics
    /// When there is none.
    pub fn at(&self, pointer: &str) -> &Value {
        self.0.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {:#}", self.0))
    }

    /// Whether the value is there and not null.
    pub fn has(&self, pointer: &str) -> bool {
        self.0.pointer(pointer).is_some_and(|value| !value.is_null())
    }

    /// Whether the value is there and null.
    pub fn null(&self, pointer: &str) -> bool {
        self.at(pointer).is_null()
    }

    /// A string.
    pub fn str(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_else(|| panic!("{pointer} is no string in {:#}", self.0))
    }

    /// A whole number.
    pub fn int(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or_else(|| panic!("{pointer} is no number in {:#}", self.0))
    }

    /// A truth value.
    pub fn bool(&self, pointer: &str) -> bool {
        self.at(pointer).as_bool().unwrap_or_else(|| panic!("{pointer} is no bool in {:#}", self.0))
    }

    /// The entries of an array.
    pub fn items(&self, pointer: &str) -> Vec<Json> {
        let array = self.at(pointer).as_array();
        array.unwrap_or_else(|| panic!("{pointer} is no array in {:#}", self.0)).iter().cloned().map(Json).collect()
    }

    /// The string at `pointer` of every entry of `list`.
    pub fn each(&self, list: &str, pointer: &str) -> Vec<String> {
        self.items(list).iter().map(|item| item.str(pointer).to_owned()).collect()
    }

    /// Asserts the kind of a command's end and the number it is rendered with.
    pub fn ends(&self, kind: &str, exit_code: impl Into<Option<i64>>) -> &Json {
        let exit_code = exit_code.into();
        assert_eq!(self.str("/phase"), "ended", "not ended: {:#}", self.0);
        assert_eq!(self.str("/end/kind"), kind, "another end: {:#}", self.0);
        assert_eq!(self.at("/exit_code").as_i64(), exit_code, "another exit code: {:#}", self.0);
        self
    }

    /// Asserts the detail of a command's end.
    pub fn detail(&self, detail: &str) -> &Json {
        assert_eq!(self.str("/end/detail"), detail, "another detail: {:#}", self.0);
        self
    }

    /// Asserts that the command has not ended.
    pub fn runs(&self) -> &Json {
        assert_eq!(self.str("/phase"), "running", "not running: {:#}", self.0);
        self
    }

    /// The text of the output.
    pub fn output(&self) -> &str {
        self.str("/output/text")
    }

    /// The names of the survivors.
    pub fn survivors(&self) -> Vec<String> {
        self.each("/survivors", "/name")
    }
}
