//! `TG.TOP` and `TG.OVERRIDES`: the heaviest keys, and the overrides in force.
//!
//! Both are arrays of maps, with the members of `/v1/top` and `/v1/overrides`.

use std::collections::BTreeSet;

use tidegate_rules::Instead;

use super::reply::{Replies, echo, saturated};
use super::session::{Call, CommandResult};
use crate::date;
use crate::top_keys::{NoSuchRule, TopQuery};

/// `TG.TOP [RULE name] [COUNT n] [BY denied|asked]`: the keys with the most denials, or with the most requests.
pub(super) fn top(call: &mut Call<'_, '_>) -> CommandResult {
    let asked = read(call)?;
    let keys = asked.run(&call.worker.engine).map_err(|NoSuchRule(rule)| {
        format!("ERR rule {rule:?}: there is no rule of this name; name one that is in force")
    })?;
    let replies = &mut call.replies;
    replies.array(keys.len());
    for key in keys {
        replies.map(5);
        replies.bulk(b"rule");
        text_or_null(replies, key.rule.as_deref());
        replies.bulk(b"key");
        replies.array(key.key.len());
        key.key.iter().for_each(|part| replies.bulk(part.as_bytes()));
        for (name, number) in [("asked", key.asked), ("denied", key.denied), ("error", key.error)] {
            replies.bulk(name.as_bytes());
            replies.integer(saturated(number));
        }
    }
    Ok(())
}

/// Reads the options of `TG.TOP`. A word that is not an option is an error, so a misspelled one is not ignored.
fn read<'a>(call: &Call<'a, '_>) -> Result<TopQuery<&'a str>, String> {
    let (mut asked, mut words) = (TopQuery::default(), call.words.from(1).iter());
    while let Some(option) = words.next() {
        let value = words.next().ok_or_else(|| format!("ERR '{}' has no value", echo(option)))?;
        let text = std::str::from_utf8(value).map_err(|_| format!("ERR '{}' is no text", echo(value)))?;
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

/// Writes a text, or null.
fn text_or_null(replies: &mut Replies<'_>, text: Option<&str>) {
    match text {
        Some(text) => replies.bulk(text.as_bytes()),
        None => replies.null(),
    }
}
