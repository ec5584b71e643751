//! `TG.ADMIT`: the decision of the rules about a request.
//!
//! A request is a list of attributes, as over HTTP: `TG.ADMIT path /login method POST ip 192.0.2.7`. A header
//! field, cookie or query parameter may be repeated.

use std::mem;
use std::time::Duration;

use tidegate::Cost;
use tidegate_rules::Attributes;

use super::ask::unsigned;
use super::fields::{self, ReplyLimits};
use super::parse::Words;
use super::pending::CommandOrder;
use super::reply::echo;
use super::session::{Call, CommandResult};
use crate::attribute::{self, Wrong};
use crate::settings::{MAX_ATTRIBUTES, MAX_KEY_BYTES};

/// `TG.ADMIT [ALL] [COST n] [MAXWAIT ms] attribute value …`: decides by the rules, and spends if allowed.
///
/// With `ALL` the reply lists every limit that decided. Without it the gate reports the binding one alone.
///
/// The attributes of a command are read into memory that the thread reuses. A store in memory decides without a
/// copy of them; for a remote store they are copied.
pub(super) fn admit(call: &mut Call<'_, '_>) -> CommandResult {
    let mut attributes: Attributes<'_> = mem::take(call.attributes);
    let limits = read(call.words.from(1), &mut attributes)?;
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

/// Reads options and attributes.
///
/// An attribute whose name is `ALL`, `COST` or `MAXWAIT` can only follow another attribute. Names and values have at
/// most [`MAX_KEY_BYTES`] bytes together.
pub(super) fn read<'a>(words: Words<'a>, attributes: &mut Attributes<'a>) -> Result<ReplyLimits, String> {
    let (mut at, mut limits) = (0, ReplyLimits::Binding);
    // Options come first. After the first attribute the same words are names of attributes.
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
    put_all(words.from(at), words.len() - at, attributes)?;
    Ok(limits)
}

/// Reads attributes from the first `count` words: names and values in turn.
pub(super) fn put_all<'a>(words: Words<'a>, count: usize, attributes: &mut Attributes<'a>) -> CommandResult {
    if count > 2 * MAX_ATTRIBUTES {
        return Err(format!("ERR a request has at most {MAX_ATTRIBUTES} attributes"));
    }
    let (mut rest, mut bytes) = (words.iter().take(count), 0);
    while let Some(name) = rest.next() {
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
        let put = attribute::name(name).and_then(|text| attribute::add(attributes, text, value));
        put.map_err(|wrong| not_put(name, value, wrong))?;
    }
    Ok(())
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
