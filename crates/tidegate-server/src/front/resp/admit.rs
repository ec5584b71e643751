//! `TG.ADMIT`: the decision of the rules about a request.
//!
//! A request is a list of attributes, as over HTTP: `TG.ADMIT path /login method POST ip 192.0.2.7`. A header
//! field, cookie or query parameter may be repeated.

use std::mem;
use std::str;
use std::time::Duration;

use tidegate::Cost;
use tidegate_rules::Attributes;

use super::ask::unsigned;
use super::fields::{self, ReplyLimits};
use super::parse::Words;
use super::pending::CommandOrder;
use super::reply::echo;
use super::session::{Call, CommandResult};
use crate::attribute::{self, AddressPrefix, Wrong};
use crate::settings::{MAX_ATTRIBUTES, MAX_KEY_BYTES};

/// The error of `ALL` in a peek.
pub(super) const ALL_OF_PEEK: &str =
    "ERR ALL is for TG.ADMIT: a peek under a rule has one limit; leave it out";

/// `TG.ADMIT [ALL] [COST n] [MAXWAIT ms] attribute value …`: decides by the rules, and spends if allowed.
///
/// With `ALL` the reply lists every limit that decided. Without it the gate reports the binding one alone.
///
/// The attributes of a command are read into memory that the thread reuses. A store in memory decides without a
/// copy of them; for a remote store they are copied.
pub(super) fn admit(call: &mut Call<'_, '_>) -> CommandResult {
    let mut attributes: Attributes<'_> = mem::take(call.attributes);
    let (limits, _) = read(call.words.from(1), AttributesOf::Request, &mut attributes)?;
    // If the reply is ready, the attributes need not outlive this call.
    if let Some(admission) = call.worker.engine.rules().admit_at_once(&attributes) {
        let permits = fields::admission(&mut call.replies, &admission, limits);
        call.session.unsent.note(permits, &call.worker.engine);
        *call.attributes = attributes.cleared();
        return Ok(());
    }
    admit_later(call, attributes.into_owned(), limits);
    Ok(())
}

/// Asks a remote store.
///
/// The attributes are copied, since the input of the connection is reused while the reply is pending.
#[cold]
fn admit_later(call: &mut Call<'_, '_>, attributes: Attributes<'static>, limits: ReplyLimits) {
    call.ask(
        CommandOrder::Together,
        |worker| async move { worker.engine.rules().admit(&attributes).await },
        move |replies, admission| fields::admission(replies, &admission, limits),
    );
}

/// The meaning of a list of attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributesOf {
    /// A request, behind the options of `TG.ADMIT`.
    Request,
    /// A key of a rule, behind the options of `TG.PEEK RULE`.
    Peek,
    /// A key of a rule, in a command without options.
    Key,
}

/// Reads options and attributes. Returns the group of addresses as well, if a key has one in place of an address.
///
/// Options are accepted in any case. Behind the first attribute, `ALL`, `COST` and `MAXWAIT` in capitals are errors, and
/// in any other spelling names of attributes. Names and values have at most [`MAX_KEY_BYTES`] bytes together.
pub(super) fn read<'a>(
    words: Words<'a>,
    of: AttributesOf,
    attributes: &mut Attributes<'a>,
) -> Result<(ReplyLimits, Option<AddressPrefix>), String> {
    let (mut at, mut limits) = (0, ReplyLimits::Binding);
    while let Some(option) = words.get(at) {
        if option.eq_ignore_ascii_case(b"ALL") {
            *attributes = mem::take(attributes).all_limits();
            limits = ReplyLimits::All;
            at += 1;
            continue;
        }
        let Some(value) = words.get(at + 1) else { break };
        if option.eq_ignore_ascii_case(b"COST") {
            let units = unsigned(value, "COST takes a whole number")?;
            let cost =
                Cost::new(units).map_err(|_| "ERR COST is at least 1; leave it out for 1".to_owned())?;
            *attributes = mem::take(attributes).cost(cost);
        } else if option.eq_ignore_ascii_case(b"MAXWAIT") {
            let ms = unsigned(value, "MAXWAIT takes whole milliseconds")?;
            *attributes = mem::take(attributes).max_wait(Duration::from_millis(ms));
        } else {
            break;
        }
        at += 2;
    }
    let group = put_all(words.from(at), words.len() - at, of, attributes)?;
    Ok((limits, group))
}

/// Reads attributes from the first `count` words: names and values in turn. Returns the group of addresses that a key
/// has in place of an address.
pub(super) fn put_all<'a>(
    words: Words<'a>,
    count: usize,
    of: AttributesOf,
    attributes: &mut Attributes<'a>,
) -> Result<Option<AddressPrefix>, String> {
    if count > 2 * MAX_ATTRIBUTES {
        return Err(format!("ERR a request has at most {MAX_ATTRIBUTES} attributes"));
    }
    let (mut rest, mut bytes, mut group) = (words.iter().take(count), 0, None);
    while let Some(name) = rest.next() {
        if bytes > 0 && of != AttributesOf::Key && matches!(name, b"ALL" | b"COST" | b"MAXWAIT") {
            return Err(option_behind(name, of));
        }
        let Some(value) = rest.next() else {
            return Err(format!(
                "ERR attribute '{}' has no value; write attribute value, again and again",
                echo(name)
            ));
        };
        bytes += name.len() + value.len();
        if bytes > MAX_KEY_BYTES {
            return Err(format!(
                "ERR the attributes of a request have at most {MAX_KEY_BYTES} bytes together"
            ));
        }
        let found = match (of, name) {
            (AttributesOf::Peek | AttributesOf::Key, b"ip") => group_in(value),
            _ => None,
        };
        let put = match found {
            Some(found) => attribute::put(attributes, "ip".into(), found.address.to_string()),
            None => attribute::name(name).and_then(|text| attribute::add(attributes, text, value)),
        };
        put.map_err(|wrong| not_put(name, value, wrong))?;
        group = group.or(found);
    }
    Ok(group)
}

/// Returns the group of addresses that a value names.
fn group_in(value: &[u8]) -> Option<AddressPrefix> {
    AddressPrefix::parse(str::from_utf8(value).ok()?)
}

/// Returns the error about an option behind the first attribute.
#[cold]
fn option_behind(option: &[u8], of: AttributesOf) -> String {
    let option = str::from_utf8(option).unwrap_or_default();
    let (command, attributes) = match of {
        AttributesOf::Request => ("TG.ADMIT", "path /login"),
        AttributesOf::Peek | AttributesOf::Key => ("TG.PEEK RULE login", "user ana"),
    };
    let number = match option {
        "ALL" if of != AttributesOf::Request => return ALL_OF_PEEK.to_owned(),
        "COST" => " 2",
        "MAXWAIT" => " 500",
        _ => "",
    };
    format!(
        "ERR attribute '{option}': {option} comes before the attributes; write {command} {option}{number} {attributes}"
    )
}

/// Returns the error about an attribute. An invalid address is repeated, shortened and escaped.
#[cold]
fn not_put(name: &[u8], value: &[u8], wrong: Wrong) -> String {
    let not = match wrong {
        Wrong::NoAddress => format!(", not '{}'", echo(value)),
        _ => String::new(),
    };
    format!("ERR attribute '{}' {wrong}{not}", echo(name))
}
