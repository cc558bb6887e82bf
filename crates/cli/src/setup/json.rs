//! Settings in JSON: changed in their text, so that order, spacing and comments stay as they were.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::entry::{Edited, Entry, Match, foreign, holds};

/// JSON with comments and trailing commas, which some hosts take; what else is loose is an error.
const STRICT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Puts the entries into a text. The error says where the text is not understood.
pub fn put(text: &str, entries: &[Entry]) -> Result<Edited, String> {
    let (root, object) = parse(text)?;
    entries.iter().try_for_each(|entry| once(text, entry))?;
    let mut edited = Edited::default();
    for entry in entries {
        match entry {
            Entry::Key { path, value } => {
                let (name, parents) = path.split_last().ok_or("an entry without a name")?;
                let parent = object_at(&object, parents)?;
                match parent.get(name) {
                    None => {
                        parent.append(name, input(value));
                        edited.added.push(entry.place());
                    }
                    Some(found) => {
                        let found: Option<Value> = found.to_serde_value();
                        if let Some(why) = found.as_ref().and_then(|found| foreign(found, value, &entry.place())) {
                            return Err(why);
                        }
                        if !found.is_some_and(|found| holds(&found, value)) {
                            edited.left.push(entry.place());
                        }
                    }
                }
            }
            Entry::Element { path, value } => {
                let (name, parents) = path.split_last().ok_or("an entry without a name")?;
                let parent = object_at(&object, parents)?;
                let list =
                    parent.array_value_or_create(name).ok_or_else(|| format!("`{}` is no list", entry.place()))?;
                let found = list.elements().into_iter().filter_map(|one| one.to_serde_value());
                match Match::any(found, value) {
                    Match::Same => {}
                    Match::Changed => edited.left.push(entry.place()),
                    Match::Other => {
                        list.append(input(value));
                        edited.added.push(entry.place());
                    }
                }
            }
        }
    }
    edited.text = ended(root.to_string());
    Ok(edited)
}

/// Takes the entries out of a text, and what is empty then on the way to them.
pub fn take(text: &str, entries: &[Entry]) -> Result<Edited, String> {
    let (root, object) = parse(text)?;
    entries.iter().try_for_each(|entry| once(text, entry))?;
    let mut edited = Edited::default();
    for entry in entries {
        match entry {
            Entry::Key { path, value } => {
                let Some((name, parents)) = path.split_last() else { continue };
                let Some(parent) = object_if_any(&object, parents) else { continue };
                match parent.get(name) {
                    Some(found) if found.to_serde_value().as_ref() == Some(value) => {
                        found.remove();
                        edited.removed.push(entry.place());
                    }
                    Some(_) => edited.left.push(entry.place()),
                    None => continue,
                }
                prune(&object, parents);
            }
            Entry::Element { path, value } => {
                let Some((name, parents)) = path.split_last() else { continue };
                let Some(list) = object_if_any(&object, parents).and_then(|parent| parent.array_value(name)) else {
                    continue;
                };
                for one in list.elements() {
                    let Some(found) = one.to_serde_value() else { continue };
                    match Match::of(&found, value) {
                        Match::Same => {
                            one.remove();
                            edited.removed.push(entry.place());
                        }
                        Match::Changed => edited.left.push(entry.place()),
                        Match::Other => {}
                    }
                }
                prune(&object, path);
            }
        }
    }
    edited.text = root.to_string();
    Ok(edited)
}

/// Whether nothing stands in it.
pub fn is_empty(text: &str) -> bool {
    parse(text).is_ok_and(|(_, object)| object.properties().is_empty())
}

fn parse(text: &str) -> Result<(CstRootNode, CstObject), String> {
    let root = CstRootNode::parse(text, &STRICT).map_err(|error| {
        format!("line {}, column {}: {}", error.line_display(), error.column_display(), error.kind())
    })?;
    let object = root.object_value_or_create().ok_or("line 1: it is no JSON object")?;
    Ok((root, object))
}

/// Whether each name on the way to an entry stands once: of two, hosts read another one than is changed here.
fn once(text: &str, entry: &Entry) -> Result<(), String> {
    let (Entry::Key { path, .. } | Entry::Element { path, .. }) = entry;
    let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT).map_err(|error| error.to_string())?;
    let mut at = parsed.value;
    for name in path {
        let Some(ast::Value::Object(object)) = at else { return Ok(()) };
        let mut found = object.properties.into_iter().filter(|one| one.name.as_str() == *name);
        let first = found.next();
        if let Some(second) = found.next() {
            let line = text[..second.start()].matches('\n').count() + 1;
            return Err(format!("line {line}: {name:?} stands here for the second time; keep one of them"));
        }
        at = first.map(|one| one.value);
    }
    Ok(())
}

fn object_at(root: &CstObject, path: &[&str]) -> Result<CstObject, String> {
    path.iter().try_fold(root.clone(), |at, name| {
        at.object_value_or_create(name).ok_or_else(|| format!("`{}` is no object", path.join(".")))
    })
}

fn object_if_any(root: &CstObject, path: &[&str]) -> Option<CstObject> {
    path.iter().try_fold(root.clone(), |at, name| at.object_value(name))
}

/// Removes the last of a path if it is empty, then the one before it.
fn prune(root: &CstObject, path: &[&str]) {
    for length in (1..=path.len()).rev() {
        let (Some(parent), Some(name)) = (object_if_any(root, &path[..length - 1]), path.get(length - 1)) else {
            return;
        };
        let Some(found) = parent.get(name) else { return };
        match found.to_serde_value() {
            Some(Value::Object(object)) if object.is_empty() => found.remove(),
            Some(Value::Array(list)) if list.is_empty() => found.remove(),
            _ => return,
        }
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(input).collect()),
        Value::Object(object) => {
            CstInputValue::Object(object.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

fn ended(text: String) -> String {
    if text.ends_with('\n') { text } else { text + "\n" }
}
