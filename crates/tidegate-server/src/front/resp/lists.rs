//! `TG.TOP`, `TG.BANS` and `TG.OVERRIDES`: the heaviest keys, the banned keys, and the overrides in force.
//!
//! They are arrays of maps, with the members of `/v1/top`, `/v1/bans` and `/v1/overrides`.

use std::collections::BTreeSet;

use tidegate_rules::Instead;
use tidegate_support::ceil_ms;

use super::pending::CommandOrder;
use super::reply::{Replies, echo, saturated};
use super::session::{Call, CommandResult};
use crate::date;
use crate::top_keys::{BansQuery, NoSuchRule, TopQuery};

/// `TG.TOP [RULE name] [COUNT n] [BY denied|asked]`: the keys with the most denials, or with the most requests.
pub(super) fn top(call: &mut Call<'_, '_>) -> CommandResult {
    let asked = read(call)?;
    let keys = asked.run(&call.worker.engine).map_err(no_such_rule)?;
    let replies = &mut call.replies;
    replies.array(keys.len());
    for key in keys {
        replies.map(5);
        replies.bulk(b"rule");
        text_or_null(replies, key.rule.as_deref());
        put_parts(replies, &key.key);
        for (name, number) in [("asked", key.asked), ("denied", key.denied), ("error", key.error)] {
            replies.bulk(name.as_bytes());
            replies.integer(saturated(number));
        }
    }
    Ok(())
}

/// Reads the options of `TG.TOP`.
fn read<'a>(call: &Call<'a, '_>) -> Result<TopQuery<&'a str>, String> {
    let mut asked = TopQuery::default();
    for option in options(call) {
        let (option, text) = option?;
        match option.to_ascii_uppercase().as_slice() {
            b"RULE" => asked.rule = Some(text),
            b"COUNT" => asked.set_keys(text).map_err(|what| format!("ERR COUNT {what}"))?,
            b"BY" => asked.set_by(text).map_err(|what| format!("ERR BY {what}"))?,
            _ => {
                return Err(format!(
                    "ERR unexpected '{}'; write [RULE name] [COUNT n] [BY denied|asked]",
                    echo(option)
                ));
            }
        }
    }
    Ok(asked)
}

/// `TG.BANS [RULE name] [COUNT n]`: the keys that penalties ban, the longest bans first.
pub(super) fn bans(call: &mut Call<'_, '_>) -> CommandResult {
    let mut asked = BansQuery::default();
    for option in options(call) {
        let (option, text) = option?;
        match option.to_ascii_uppercase().as_slice() {
            b"RULE" => asked.rule = Some(text.to_owned()),
            b"COUNT" => asked.set_keys(text).map_err(|what| format!("ERR COUNT {what}"))?,
            _ => return Err(format!("ERR unexpected '{}'; write [RULE name] [COUNT n]", echo(option))),
        }
    }
    asked.check(&call.worker.engine).map_err(no_such_rule)?;
    call.ask(
        CommandOrder::Alone,
        |worker| async move { asked.run(&worker.engine).await },
        |replies, bans| {
            replies.array(bans.len());
            for ban in bans {
                replies.map(3);
                replies.bulk(b"rule");
                replies.bulk(ban.rule.as_bytes());
                put_parts(replies, &ban.key);
                replies.bulk(b"ends_in");
                replies.integer(saturated(ceil_ms(ban.ends_in)));
            }
            None
        },
    );
    Ok(())
}

/// Returns the options of a command: names and values in turn. A word that is not an option is an error of the caller, so
/// a misspelled one is not ignored.
fn options<'a>(call: &Call<'a, '_>) -> impl Iterator<Item = Result<(&'a [u8], &'a str), String>> + use<'a> {
    let mut words = call.words.from(1).iter();
    std::iter::from_fn(move || {
        let option = words.next()?;
        let value = words.next().ok_or_else(|| format!("ERR '{}' has no value", echo(option)));
        Some(value.and_then(|value| match std::str::from_utf8(value) {
            Ok(text) => Ok((option, text)),
            Err(_) => Err(format!("ERR '{}' is no text", echo(value))),
        }))
    })
}

/// Returns the error about a rule that is not in force.
#[cold]
fn no_such_rule(NoSuchRule(rule): NoSuchRule) -> String {
    format!("ERR rule {rule:?}: there is no rule of this name; name one that is in force")
}

/// `TG.OVERRIDES [RULE name]`: the overrides that have not ended, of one rule or of all, by rule and end.
pub(super) fn overrides(call: &mut Call<'_, '_>) -> CommandResult {
    let mut all = call.worker.engine.gate().overrides();
    match (call.words.get(1), call.words.get(2), call.words.len()) {
        (None, ..) => {}
        (Some(option), Some(rule), 3) if option.eq_ignore_ascii_case(b"RULE") => {
            all.retain(|one| one.rule.as_bytes() == rule);
        }
        (Some(word), ..) => return Err(format!("ERR unexpected '{}'; write [RULE name]", echo(word))),
    }
    let gate = call.worker.engine.gate();
    let idle: BTreeSet<_> = gate.idle_overrides().into_iter().map(|idle| idle.one.id()).collect();
    let replies = &mut call.replies;
    replies.array(all.len());
    for one in all {
        replies.map(8);
        replies.bulk(b"rule");
        replies.bulk(one.rule.as_bytes());
        replies.bulk(b"key");
        replies.map(one.key.len());
        for (name, value) in &one.key {
            replies.bulk(name.as_bytes());
            replies.bulk(value.as_bytes());
        }
        let (limit, decision) = match one.instead {
            Instead::Limit(limit) => (Some(limit.to_string()), None),
            Instead::Allow => (None, Some("allow")),
            Instead::Deny => (None, Some("deny")),
        };
        replies.bulk(b"limit");
        text_or_null(replies, limit.as_deref());
        replies.bulk(b"decision");
        text_or_null(replies, decision);
        replies.bulk(b"until");
        text_or_null(replies, one.until.map(date::written).as_deref());
        replies.bulk(b"by");
        text_or_null(replies, one.by.as_deref());
        replies.bulk(b"at");
        replies.bulk(date::written(one.at).as_bytes());
        replies.bulk(b"in_effect");
        replies.integer(i64::from(!idle.contains(&one.id())));
    }
    Ok(())
}

/// Writes the parts of a key as the field `key`.
fn put_parts(replies: &mut Replies<'_>, parts: &[String]) {
    replies.bulk(b"key");
    replies.array(parts.len());
    parts.iter().for_each(|part| replies.bulk(part.as_bytes()));
}

/// Writes a text, or null.
fn text_or_null(replies: &mut Replies<'_>, text: Option<&str>) {
    match text {
        Some(text) => replies.bulk(text.as_bytes()),
        None => replies.null(),
    }
}
