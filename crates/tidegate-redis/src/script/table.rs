//! The table of the limits that a namespace has had, in a hash of its own.
//!
//! ```text
//!   tg:limits:user    tB3kQ0-x_91a:10:1600000000:...   ->   order:since:until
//!                     name and numbers of a limit                 in whole microseconds of the server's time
//! ```
//!
//! No decision reads it. A limit is listed before a state is written under it. The table is read when the limit of a
//! rule comes into force, and when a key is reset under every limit. It is also read within a second after a state was
//! written, because it may have been deleted.

use redis::Value;
use tidegate_core::{Algorithm, History, Predecessor, PreparedLimit, Ticks, Timestamp};

use super::key::{LIMIT_LETTERS, LimitName, StateName, letter, slot, table_name};
use super::limits::held_numbers;
use super::reply::{text_of, time_of_parts};
use super::text::Job;
use super::{Call, TICKS, Time, Unreadable};

/// The field with the time until which states matter under limits that did not fit into the table.
const OTHERS: &str = "~";

/// The entry of a limit in the table of its namespace.
#[derive(Clone, Debug)]
pub(crate) struct TableEntry {
    table: StateName,
    field: String,
}

/// The time at which the limit of a rule came into force, and its position in their order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InForce {
    /// The position; zero if it is not the limit of a rule. It distinguishes limits that came into force at one
    /// instant.
    pub(crate) order: u64,
    pub(crate) since: Timestamp,
}

/// A limit as listed in a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedEntry {
    pub(crate) force: InForce,
    /// The time after which no state under it matters.
    pub(crate) until: Timestamp,
}

/// Fields of one table.
#[derive(Debug)]
pub(crate) struct TableFields {
    pub(crate) table: StateName,
    pub(crate) names: Vec<String>,
}

/// A limit of a rule that came into force.
#[derive(Debug)]
pub(crate) struct Announced {
    pub(crate) force: InForce,
    /// The previous limits, as scripts apply them.
    pub(crate) history: History,
    /// The names of states under each of them.
    pub(crate) names: Vec<LimitName>,
    /// True if there are live states under limits older than those of the history.
    pub(crate) drops_counts: bool,
}

/// The limits of one namespace under which a key may have states.
#[derive(Debug)]
pub(crate) struct ListedLimits {
    /// The names of the listed limits.
    pub(crate) names: Vec<LimitName>,
    /// True if there are others that did not fit into the table.
    pub(crate) has_others: bool,
}

impl TableEntry {
    /// Creates the entry of a prepared limit. Permits of a rule are one set, so their numbers are omitted.
    pub(crate) fn new(prefix: &[u8], limit: &PreparedLimit, name: &LimitName) -> TableEntry {
        let numbers = if limit.is_one_set() { [0; 5] } else { limit.limit().numbers() };
        let mut field = String::from_utf8_lossy(name.letters()).into_owned();
        for number in numbers {
            field.push(':');
            field.push_str(&number.to_string());
        }
        TableEntry { table: table_name(prefix, limit.namespace()), field }
    }

    /// Returns the name of its table.
    pub(crate) fn table(&self) -> &StateName {
        &self.table
    }

    /// Returns the slot of that table.
    pub(crate) fn slot(&self) -> u16 {
        slot(&self.table)
    }

    /// Returns the fields of several limits of one table. The last field is that of limits that did not fit.
    /// [`read_fields`] parses the reply.
    pub(crate) fn fields<'e>(entries: impl Iterator<Item = &'e TableEntry>) -> TableFields {
        let (mut table, mut names) = (StateName::default(), Vec::new());
        for entry in entries {
            table = entry.table.clone();
            names.push(entry.field.clone());
        }
        names.push(OTHERS.to_owned());
        TableFields { table, names }
    }

    /// Builds a call that lists the limit for this time from now. [`read_time`] parses the reply.
    pub(crate) fn note(&self, ahead: Ticks, force: InForce, time: Time) -> Call {
        self.call(Job::NoteLimit, ahead, force, time)
    }

    /// Builds a call that puts the limit of a rule in force, and lists it. [`read_history`] parses the reply.
    pub(crate) fn announce(&self, ahead: Ticks, time: Time) -> Call {
        self.call(Job::AnnounceLimit, ahead, InForce::default(), time)
    }

    /// Builds a call about the entry. All numbers are in whole microseconds, rounded up for ends.
    fn call(&self, job: Job, ahead: Ticks, force: InForce, time: Time) -> Call {
        let (ahead, since) = (ahead.get().div_ceil(TICKS), force.since.ticks() / TICKS);
        let mut arguments = vec![format!("n{} {ahead} {} {since}", self.field, force.order).into_bytes()];
        arguments.extend(time.arguments());
        Call { script: job.script(), keys: vec![self.table.clone()], arguments }
    }
}

/// Builds a read of the limits of a namespace. [`read_listed`] parses the reply.
pub(crate) fn list_limits(prefix: &[u8], namespace: &str, time: Time) -> Call {
    let mut arguments = vec![b"n".to_vec()];
    arguments.extend(time.arguments());
    Call { script: Job::ListLimits.script(), keys: vec![table_name(prefix, namespace)], arguments }
}

/// Parses the reply to [`TableEntry::note`]: the time of the entry.
pub(crate) fn read_time(reply: &Value) -> Result<Timestamp, Unreadable> {
    match reply {
        Value::Array(parts) if parts.len() >= 2 => time_of_parts(&parts[..2]),
        other => Err(Unreadable::new("no time", other)),
    }
}

/// Parses the reply to [`TableEntry::announce`].
pub(crate) fn read_history(reply: &Value, namespace: &str) -> Result<Announced, Unreadable> {
    let unreadable = || Unreadable::new("no history", reply);
    let Value::Array(parts) = reply else { return Err(unreadable()) };
    let [_, _, Value::Int(order), since, Value::Int(drops), before @ ..] = &**parts else {
        return Err(unreadable());
    };
    let order = u64::try_from(*order).map_err(|_| unreadable())?;
    let since = micros(since).ok_or_else(unreadable)?;
    let (mut predecessors, mut names) = (Vec::new(), Vec::new());
    for limit in before.chunks_exact(2) {
        let field = text_of(&limit[0]).ok_or_else(unreadable)?;
        let since = micros(&limit[1]).ok_or_else(unreadable)?;
        // A limit that no script supports has no states.
        if let Some(known) = predecessor(field, since) {
            predecessors.push(known);
            names.push(LimitName::of_letters(&field.as_bytes()[..LIMIT_LETTERS], namespace));
        }
    }
    let (force, history) = (InForce { order, since }, History::new(since, predecessors));
    Ok(Announced { force, history, names, drops_counts: *drops != 0 })
}

/// Parses the reply to [`TableEntry::fields`]; `None` for a missing field.
pub(crate) fn read_fields(reply: &Value) -> Result<Vec<Option<ListedEntry>>, Unreadable> {
    match reply {
        Value::Array(values) => Ok(values.iter().map(listed_entry).collect()),
        other => Err(Unreadable::new("no fields", other)),
    }
}

/// Parses the value of a field. A malformed value counts as missing, and is overwritten.
fn listed_entry(value: &Value) -> Option<ListedEntry> {
    let numbers: Option<Vec<u64>> = text_of(value)?.split(':').map(|word| word.parse().ok()).collect();
    let [order, since, until] = numbers?.try_into().ok()?;
    let time = |micros: u64| Some(Timestamp::from_ticks(micros.checked_mul(TICKS)?));
    Some(ListedEntry { force: InForce { order, since: time(since)? }, until: time(until)? })
}

/// Parses the reply to [`list_limits`].
pub(crate) fn read_listed(reply: &Value, namespace: &str) -> Result<ListedLimits, Unreadable> {
    let unreadable = || Unreadable::new("no limits", reply);
    let Value::Array(parts) = reply else { return Err(unreadable()) };
    let [Value::Int(has_others), fields @ ..] = &**parts else { return Err(unreadable()) };
    let name = |field: &Value| {
        let letters = text_of(field)?.as_bytes().get(..LIMIT_LETTERS)?;
        Some(LimitName::of_letters(letters, namespace))
    };
    let names: Option<Vec<_>> = fields.iter().map(name).collect();
    Ok(ListedLimits { names: names.ok_or_else(unreadable)?, has_others: *has_others == 1 })
}

/// Converts microseconds to a time.
fn micros(value: &Value) -> Option<Timestamp> {
    let Value::Int(micros) = value else { return None };
    Some(Timestamp::from_ticks(u64::try_from(*micros).ok()?.checked_mul(TICKS)?))
}

/// Parses the field of a previous limit. Returns `None` for a limit that this version does not know.
fn predecessor(field: &str, since: Timestamp) -> Option<Predecessor> {
    let mut words = field.split(':');
    let letters = words.next().filter(|letters| letters.len() == LIMIT_LETTERS)?;
    let known = |algorithm: &Algorithm| letters.as_bytes().first() == Some(&letter(*algorithm));
    let algorithm = Algorithm::ALL.into_iter().find(known)?;
    let numbers: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    // Permits of a rule are one set for all numbers, so the numbers are not stored, and nothing is carried over.
    let numbers: [u64; 5] = numbers?.try_into().ok()?;
    let numbers = match numbers {
        [0, 0, 0, 0, 0] => [1, 1, 0, 0, 0],
        numbers => held_numbers(algorithm, numbers)?,
    };
    Predecessor::from_numbers(algorithm, numbers, since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_an_order_a_time_and_an_end() {
        let text = |text: &str| Value::BulkString(text.into());
        let read = |value| read_fields(&Value::Array(vec![value])).expect("fields").remove(0);
        let entry = read(text("3:50:70")).expect("an entry");
        let (order, since, until) = (entry.force.order, entry.force.since, entry.until);
        assert_eq!((order, since.ticks(), until.ticks()), (3, 50 * TICKS, 70 * TICKS));
        for bad in ["", "1:2", "1:2:3:4", "1:2:x", "1:2:99999999999999999999", "1:2:1152921504606847"] {
            assert!(read(text(bad)).is_none(), "{bad:?}");
        }
        assert!(read(Value::Nil).is_none() && read_fields(&Value::Nil).is_err());
    }
}
