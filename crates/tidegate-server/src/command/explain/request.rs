//! Parses a request from command-line arguments.
//!
//! A word is split at the first equals sign, so values can contain more of them. Values are bytes, since header
//! fields need not be UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Map, Value};
use tidegate_rules::{Attributes, Policy};
use tidegate_support::nearest;

use super::Failure;
use crate::attribute::{self, AddressPrefix};

/// Parses arguments like `ip=192.0.2.7`. A request may have several values of one header field, cookie or query
/// parameter.
pub(super) fn read(words: &[OsString]) -> Result<Attributes<'_>, Failure> {
    let mut attributes = Attributes::new();
    words.iter().try_for_each(|word| add(&mut attributes, word)).map_err(Failure::misused)?;
    Ok(attributes)
}

/// Parses the same arguments to the members of a JSON object, for a request to a server.
///
/// Values have to be UTF-8 there. A name with several values is a list.
pub(in crate::command) fn object(words: &[OsString]) -> Result<Map<String, Value>, Failure> {
    read(words)?;
    members(words)
}

/// Parses the parts of a key to the members of a JSON object. `ip` may be a group of addresses, as lists show it.
pub(in crate::command) fn key_object(words: &[OsString]) -> Result<Map<String, Value>, Failure> {
    let addresses: Vec<OsString> = words.iter().map(with_an_address).collect();
    read(&addresses)?;
    members(words)
}

/// Returns the argument with an address in place of a group of addresses.
fn with_an_address(word: &OsString) -> OsString {
    let group = word.to_str().and_then(|text| AddressPrefix::parse(text.strip_prefix("ip=")?));
    group.map_or_else(|| word.clone(), |group| format!("ip={}", group.address).into())
}

/// Returns the members of arguments that were checked.
fn members(words: &[OsString]) -> Result<Map<String, Value>, Failure> {
    let mut object = Map::new();
    for word in words {
        let text = word.to_str().ok_or_else(|| {
            Failure::misused(format!(
                "{:?}: has a value that is no text; a server takes text only",
                word.display()
            ))
        })?;
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        match object.get_mut(name) {
            None => {
                object.insert(name.to_owned(), value.into());
            }
            Some(Value::Array(values)) => values.push(value.into()),
            Some(first) => *first = Value::Array(vec![first.take(), value.into()]),
        }
    }
    Ok(object)
}

/// Adds one argument to the request.
fn add<'a>(known: &mut Attributes<'a>, word: &'a OsStr) -> Result<(), String> {
    let shown = word.to_string_lossy();
    let bytes = word.as_bytes();
    let Some(at) = bytes.iter().position(|byte| *byte == b'=') else {
        return Err(format!("{shown:?}: has no \"=\"; write NAME=VALUE, as in ip=192.0.2.7"));
    };
    let (name, value) = (&bytes[..at], &bytes[at + 1..]);
    let name = std::str::from_utf8(name).ok().filter(|name| is_name(name)).ok_or_else(|| {
        format!("{shown:?}: begins with no name; they have letters, digits, _ - and . only, as in user=ana")
    })?;
    attribute::add(known, name.into(), value).map_err(|wrong| format!("{shown:?}: {name} {wrong}"))
}

/// Returns true for a name that a rule could contain.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

/// Attributes that every front can have. They are never reported as unknown.
const USUAL: [&str; 5] = ["ip", "path", "method", "host", "user"];
/// Returns a line for each attribute that no rule uses and that is probably a typing error.
///
/// A note and not an error: a request may have attributes that no rule uses.
pub(super) fn unknown(request: &Attributes<'_>, policy: &Policy) -> Vec<String> {
    let looked_at: Vec<&str> = policy.attributes().collect();
    let is_usual = |name: &str| USUAL.contains(&name) || attribute::may_repeat(name);
    let is_new = |name: &&str| !looked_at.contains(name) && !is_usual(name);
    let unknown = request.names().filter(is_new).map(|name| {
        let near = nearest(name, looked_at.iter().copied().chain(USUAL));
        let meant = near.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
        format!("note: no rule looks at {name:?}{meant}")
    });
    unknown.collect()
}
