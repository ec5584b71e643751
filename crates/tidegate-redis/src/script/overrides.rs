//! Calls about the table of overrides, and the parsing of their replies.

use redis::Value;

use super::key::{StateName, overrides_name};
use super::reply::{read_whether, text_of};
use super::table::TableFields;
use super::text::Job;
use super::{Call, Unreadable};

/// The field with the version.
const VERSION: &str = "version";
/// The field with the first version of the table.
const EPOCH: &str = "epoch";

/// The content of the table of overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableContent {
    /// The version; 0 if there is no table.
    pub(crate) version: u64,
    /// The first version of the table; `None` if it is not known.
    pub(crate) epoch: Option<u64>,
    /// The number of fields.
    pub(crate) count: usize,
    /// The fields and their values; `None` if there are too many.
    pub(crate) fields: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

/// Returns the field with the version of the table.
pub(crate) fn version_field(prefix: &[u8]) -> TableFields {
    TableFields { table: overrides_name(prefix), names: vec![VERSION.to_owned()] }
}

/// Parses the reply to a read of [`version_field`]; 0 if there is no table.
pub(crate) fn read_version(reply: &Value) -> Result<u64, Unreadable> {
    match reply {
        Value::Array(values) => match &values[..] {
            [Value::Nil] => Ok(0),
            [version] => number(version).ok_or_else(|| Unreadable::new("no version", reply)),
            _ => Err(Unreadable::new("no version", reply)),
        },
        _ => Err(Unreadable::new("no version", reply)),
    }
}

/// Builds a call that reads the whole table, if it has at most so many fields beside its version.
pub(crate) fn read_overrides(prefix: &[u8], most: usize) -> Call {
    call(Job::ReadOverrides, overrides_name(prefix), vec![most.to_string().into_bytes()])
}

/// Parses the reply to [`read_overrides`].
pub(crate) fn read_table(reply: Value) -> Result<TableContent, Unreadable> {
    let unreadable = |reply: &Value| Unreadable::new("no overrides", reply);
    let Value::Array(parts) = reply else { return Err(unreadable(&reply)) };
    let (version, count, all) = match &parts[..] {
        [version, Value::Int(count)] => (version, *count, None),
        [version, Value::Int(count), Value::Array(all)] => (version, *count, Some(all)),
        _ => return Err(unreadable(&Value::Array(parts))),
    };
    let pair = |pair: &[Value]| match pair {
        [Value::BulkString(field), Value::BulkString(value)] => Some((field.clone(), value.clone())),
        _ => None,
    };
    let is_override =
        |(field, _): &(Vec<u8>, Vec<u8>)| field != VERSION.as_bytes() && field != EPOCH.as_bytes();
    let mut epoch = None;
    let fields = all.map(|all| {
        let pairs: Option<Vec<_>> = all.chunks(2).map(pair).collect();
        pairs.map(|pairs| {
            let found = pairs.iter().find(|(field, _)| field == EPOCH.as_bytes());
            epoch = found.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
            pairs.into_iter().filter(is_override).collect()
        })
    });
    let read = || {
        let fields = match fields {
            None => None,
            Some(pairs) => Some(pairs?),
        };
        Some(TableContent { version: number(version)?, epoch, count: count.try_into().ok()?, fields })
    };
    read().ok_or_else(|| unreadable(&Value::Array(parts.clone())))
}

/// Builds a call that changes the table if it still has the version `from`. The table ends at `until`, in seconds since
/// 1970, or never. [`read_whether`] parses the reply.
pub(crate) fn change_overrides(
    prefix: &[u8],
    from: u64,
    until: Option<u64>,
    removed: &[Vec<u8>],
    set: &[(Vec<u8>, Vec<u8>)],
) -> Call {
    let numbers = [from, until.unwrap_or_default(), removed.len() as u64];
    let mut arguments: Vec<_> = numbers.map(|number| number.to_string().into_bytes()).into();
    arguments.extend(removed.iter().cloned());
    arguments.extend(set.iter().flat_map(|(field, value)| [field.clone(), value.clone()]));
    call(Job::ChangeOverrides, overrides_name(prefix), arguments)
}

/// Parses the reply to [`change_overrides`]: true if the change was made.
pub(crate) fn read_changed(reply: Value) -> Result<bool, Unreadable> {
    read_whether(reply)
}

fn call(job: Job, table: StateName, arguments: Vec<Vec<u8>>) -> Call {
    Call { script: job.script(), keys: vec![table], arguments }
}

fn number(value: &Value) -> Option<u64> {
    text_of(value)?.parse().ok()
}
