//! `TG.ADMIT`: what the rules say to a request.

use std::time::Duration;

use tidegate::Cost;
use tidegate_rules::Attributes;

use super::ask::unsigned;
use super::command::Command;
use super::fields;
use super::later::{Reply, written};
use super::reply::echo;
use super::session::{Call, Refused};
use crate::attribute::{self, Wrong};
use crate::engine::not_available;
use crate::settings::{MAX_ATTRIBUTES, MAX_KEY_BYTES};

/// `TG.ADMIT [COST n] [PATIENCE ms] attribute value …`
pub(super) fn admit(call: &mut Call<'_, '_>) -> Refused {
    let attributes = attributes(call)?;
    // Nothing has to outlive this call if the answer is there.
    if let Some(admission) = call.post.engine.rules().admit_at_once(&attributes) {
        let permits = fields::admission(&mut call.replies, &admission);
        call.session.untold.note(permits, &call.post.engine);
        return Ok(());
    }
    let (post, protocol, attributes) = (call.post.clone(), call.session.protocol, attributes.into_owned());
    call.answer_when_known(Command::Admit, async move {
        let admitted = post.engine.rules().admit(&attributes).await;
        let mut permits = None;
        let bytes = written(protocol, |replies| match &admitted {
            Ok(admission) => permits = fields::admission(replies, admission),
            Err(error) => replies.error(&format!("ERR {}", not_available(error))),
        });
        Reply::telling(bytes, permits, &post.engine)
    });
    Ok(())
}

/// What is known about the request.
fn attributes<'a>(call: &Call<'a, '_>) -> Result<Attributes<'a>, String> {
    let (mut attributes, mut at) = (Attributes::new(), 1);
    // Options come first: behind an attribute these are names of attributes, too.
    while let (Some(option), Some(value)) = (call.words.get(at), call.words.get(at + 1)) {
        if option.eq_ignore_ascii_case(b"COST") {
            let units = unsigned(value, "COST takes a whole number")?;
            attributes = attributes
                .cost(Cost::new(units).map_err(|_| "ERR COST is at least 1; leave it out for 1".to_owned())?);
        } else if option.eq_ignore_ascii_case(b"PATIENCE") {
            let ms = unsigned(value, "PATIENCE takes whole milliseconds")?;
            attributes = attributes.patience(Duration::from_millis(ms));
        } else {
            break;
        }
        at += 2;
    }
    let (words, mut bytes) = (call.words.from(at), 0);
    if words.len() > 2 * MAX_ATTRIBUTES {
        return Err(format!("ERR a request has at most {MAX_ATTRIBUTES} attributes"));
    }
    for pair in 0..words.len().div_ceil(2) {
        let name = words.get(2 * pair).unwrap_or_default();
        let Some(value) = words.get(2 * pair + 1) else {
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
        attributes = put(attributes, name, value)?;
    }
    Ok(attributes)
}

fn put<'a>(attributes: Attributes<'a>, name: &'a [u8], value: &'a [u8]) -> Result<Attributes<'a>, String> {
    let put = attribute::name(name).and_then(|text| attribute::add(attributes, text, value));
    put.map_err(|wrong| {
        let not = match wrong {
            Wrong::NoAddress => format!(", not '{}'", echo(value)),
            _ => String::new(),
        };
        format!("ERR attribute '{}' {wrong}{not}", echo(name))
    })
}
