//! Settings in TOML: changed in their text, so that order and comments stay as they were.

use serde_json::Value;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TableLike};

use super::entry::{Edited, Entry, Match, foreign, holds};
use super::spelling::is_mixed;

/// Puts the entries into a text. The error says where the text is not understood.
pub fn put(text: &str, entries: &[Entry]) -> Result<Edited, String> {
    let mut document = parse(text)?;
    let mut edited = Edited::default();
    for entry in entries {
        match entry {
            Entry::Key { path, value } => {
                let (name, parents) = path.split_last().ok_or("an entry without a name")?;
                let parent = table_at(document.as_table_mut(), parents)?;
                match parent.get(name) {
                    None => {
                        parent.insert(name, item(value));
                        edited.added.push(entry.place());
                    }
                    Some(found) => {
                        let found = plain(found);
                        if let Some(why) = foreign(&found, value, &entry.place()) {
                            return Err(why);
                        }
                        if !holds(&found, value) {
                            edited.left.push(entry.place());
                        }
                    }
                }
            }
            Entry::Element { path, value } => {
                let (name, parents) = path.split_last().ok_or("an entry without a name")?;
                let parent = table_at(document.as_table_mut(), parents)?;
                let list = parent.entry(name).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
                let Some(list) = list.as_array_of_tables_mut() else {
                    return Err(format!("`{}` is not written as [[{0}]]", entry.place()));
                };
                match Match::any(list.iter().map(plain_table), value) {
                    Match::Same => {}
                    Match::Changed => edited.left.push(entry.place()),
                    Match::Other => {
                        list.push(table(value));
                        edited.added.push(entry.place());
                    }
                }
            }
        }
    }
    edited.text = document.to_string();
    Ok(edited)
}

/// Takes the entries out of a text, and what is empty then on the way to them.
pub fn take(text: &str, entries: &[Entry]) -> Result<Edited, String> {
    let mut document = parse(text)?;
    let mut edited = Edited::default();
    for entry in entries {
        let (Entry::Key { path, .. } | Entry::Element { path, .. }) = entry;
        let Some((name, parents)) = path.split_last() else { continue };
        let Some(parent) = table_if_any(document.as_table_mut(), parents) else { continue };
        match entry {
            Entry::Key { value, .. } => match parent.get(name).map(plain) {
                Some(found) if found == *value => {
                    parent.remove(name);
                    edited.removed.push(entry.place());
                    prune(document.as_table_mut(), parents);
                }
                Some(_) => edited.left.push(entry.place()),
                None => {}
            },
            Entry::Element { value, .. } => {
                let Some(list) = parent.get_mut(name).and_then(Item::as_array_of_tables_mut) else { continue };
                for at in (0..list.len()).rev() {
                    match list.get(at).map(|found| Match::of(&plain_table(found), value)) {
                        Some(Match::Same) => {
                            list.remove(at);
                            edited.removed.push(entry.place());
                        }
                        Some(Match::Changed) => edited.left.push(entry.place()),
                        Some(Match::Other) | None => {}
                    }
                }
                prune(document.as_table_mut(), path);
            }
        }
    }
    edited.text = document.to_string();
    Ok(edited)
}

/// Whether nothing stands in it.
pub fn is_empty(text: &str) -> bool {
    text.trim().is_empty()
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    if is_mixed(text) {
        return Err("some lines end with CR LF and some with LF alone; make them alike".to_owned());
    }
    text.parse().map_err(|error: toml_edit::TomlError| error.to_string().trim_end().replace('\n', " "))
}

fn table_at<'a>(root: &'a mut Table, path: &[&str]) -> Result<&'a mut dyn TableLike, String> {
    let mut at: &mut dyn TableLike = root;
    for name in path {
        let item = at.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        at = item.as_table_like_mut().ok_or_else(|| format!("`{}` is no table", path.join(".")))?;
    }
    Ok(at)
}

fn table_if_any<'a>(root: &'a mut Table, path: &[&str]) -> Option<&'a mut dyn TableLike> {
    let mut at: &mut dyn TableLike = root;
    for name in path {
        at = at.get_mut(name)?.as_table_like_mut()?;
    }
    Some(at)
}

/// Removes the last of a path if it is empty, then the one before it.
fn prune(root: &mut Table, path: &[&str]) {
    for length in (1..=path.len()).rev() {
        let (Some(parent), Some(name)) = (table_if_any(root, &path[..length - 1]), path.get(length - 1)) else {
            return;
        };
        let empty = parent.get(name).is_some_and(|item| match item {
            Item::ArrayOfTables(list) => list.is_empty(),
            other => other.as_table_like().is_some_and(|table| table.is_empty()),
        });
        if !empty {
            return;
        }
        parent.remove(name);
    }
}

fn item(value: &Value) -> Item {
    match value {
        Value::Object(_) => Item::Table(table(value)),
        Value::Array(list) if !list.is_empty() && list.iter().all(Value::is_object) => {
            Item::ArrayOfTables(list.iter().map(table).collect())
        }
        other => scalar(other).map_or(Item::None, Item::Value),
    }
}

fn table(value: &Value) -> Table {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.as_str(), item(value))).collect()
}

fn scalar(value: &Value) -> Option<toml_edit::Value> {
    match value {
        Value::Bool(value) => Some((*value).into()),
        Value::Number(number) => number.as_i64().map(Into::into),
        Value::String(text) => Some(text.as_str().into()),
        Value::Array(list) => Some(list.iter().filter_map(scalar).collect::<Array>().into()),
        Value::Null | Value::Object(_) => None,
    }
}

fn plain(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => plain_value(value),
        Item::Table(table) => plain_table(table),
        Item::ArrayOfTables(list) => list.iter().map(plain_table).collect(),
    }
}

fn plain_table(table: &Table) -> Value {
    table.iter().map(|(name, item)| (name.to_owned(), plain(item))).collect()
}

fn plain_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(value) => (*value.value()).into(),
        toml_edit::Value::Array(list) => list.iter().map(plain_value).collect(),
        toml_edit::Value::InlineTable(table) => {
            table.iter().map(|(name, value)| (name.to_owned(), plain_value(value))).collect()
        }
        toml_edit::Value::Float(_) | toml_edit::Value::Datetime(_) => value.to_string().into(),
    }
}
