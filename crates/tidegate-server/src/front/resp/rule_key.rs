//! `TG.PEEK RULE`, `TG.ADJUST RULE` and `TG.RESET RULE`: one key under a rule, named by attributes as in `TG.ADMIT`.
//!
//! ```text
//! TG.PEEK RULE login [COST n] [MAXWAIT ms] user ana
//! TG.ADJUST RULE login user ana -3
//! TG.RESET RULE login user ana
//! ```
//!
//! An adjustment and a reset change what holds for others: they need a server with a token, as a change of the rules
//! does.

use tidegate::StoreError;
use tidegate_rules::{Attributes, RuleKey};

use super::admit::AttributesOf;
use super::fields::{self, ReplyLimits};
use super::parse::Words;
use super::pending::CommandOrder;
use super::reply::echo;
use super::session::{Call, CommandResult};
use super::{admit, ask};
use crate::attribute::AddressPrefix;
use crate::overrides::{AuditRecord, Author, NotKept, audited};

/// Returns true if a command is about a rule: its first argument is `RULE`, and the second is not `LIMIT`, which follows
/// a key of this name.
pub(super) fn names_a_rule(words: Words<'_>) -> bool {
    let is =
        |at: usize, name: &str| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    words.len() > 2 && is(1, "RULE") && !is(2, "LIMIT")
}

/// `TG.PEEK RULE name [COST n] [MAXWAIT ms] attribute value …`: the decision of the rule alone, without spending.
pub(super) fn peek(call: &mut Call<'_, '_>) -> CommandResult {
    let mut attributes = Attributes::new();
    let (limits, group) = admit::read(call.words.from(3), AttributesOf::Peek, &mut attributes)?;
    if limits == ReplyLimits::All {
        return Err(admit::ALL_OF_PEEK.to_owned());
    }
    let key = key(call, &attributes, group)?;
    call.ask(
        CommandOrder::Alone,
        |_| async move { key.peek().await },
        |replies, admission| fields::admission(replies, &admission, ReplyLimits::Binding),
    );
    Ok(())
}

/// `TG.ADJUST RULE name attribute value … n`: charges a positive number, refunds a negative one.
pub(super) fn adjust(call: &mut Call<'_, '_>) -> CommandResult {
    may_change(call)?;
    let last = call.words.len() - 1;
    let adjustment = ask::adjustment(call.words.get(last).unwrap_or_default())?;
    let mut attributes = Attributes::new();
    let words = call.words.from(3);
    let group = admit::put_all(words, last.saturating_sub(3), AttributesOf::Key, &mut attributes)?;
    let key = key(call, &attributes, group)?;
    let date = call.worker.engine.gate().date();
    let audit = AuditRecord::adjust(&key, adjustment, &author(call), date);
    call.ask(
        CommandOrder::Alone,
        |worker| async move {
            let engine = &worker.engine;
            let adjusted = audited(engine.audit(), audit, engine.adjust_rule_key(&key, adjustment)).await;
            adjusted.map_err(not_logged)?
        },
        |replies, (went, left)| {
            fields::adjusted(replies, (&left).into(), went);
            None
        },
    );
    Ok(())
}

/// `TG.RESET RULE name attribute value …`: replies 1 if the key had counts under the rule, else 0.
pub(super) fn reset(call: &mut Call<'_, '_>) -> CommandResult {
    may_change(call)?;
    let (words, mut attributes) = (call.words.from(3), Attributes::new());
    let group = admit::put_all(words, words.len(), AttributesOf::Key, &mut attributes)?;
    let key = key(call, &attributes, group)?;
    let audit = AuditRecord::reset(&key, &author(call), call.worker.engine.gate().date());
    call.ask(
        CommandOrder::Alone,
        |worker| async move { audited(worker.engine.audit(), audit, key.reset()).await.map_err(not_logged)? },
        ask::integer,
    );
    Ok(())
}

/// Returns the author of a change: the name of the connection, which `CLIENT SETNAME` sets, and its address.
fn author(call: &Call<'_, '_>) -> Author {
    let name = String::from_utf8_lossy(&call.session.name).into_owned();
    Author { name: Some(name).filter(|name| !name.is_empty()), address: call.session.address }
}

/// Returns the error of a change that was not made because it could not be logged.
fn not_logged(why: NotKept) -> StoreError {
    StoreError::unfit(why.0)
}

/// Returns the key of the rule in the second argument that these attributes name, with this group of addresses in place
/// of an address.
fn key(
    call: &Call<'_, '_>,
    attributes: &Attributes<'_>,
    group: Option<AddressPrefix>,
) -> Result<RuleKey, String> {
    let name = call.words.get(2).unwrap_or_default();
    let rule = std::str::from_utf8(name).map_err(|_| {
        format!("ERR rule '{}': the name of a rule is text; name one that is in force", echo(name))
    })?;
    let gate = call.worker.engine.gate();
    if let Some(group) = group {
        group.check(rule, gate).map_err(|error| format!("ERR {error}"))?;
    }
    gate.rule_key(rule, attributes).map_err(|error| format!("ERR {error}"))
}

/// Returns an error on a server without a token: any local process could change what holds for others.
fn may_change(call: &Call<'_, '_>) -> CommandResult {
    call.worker.engine.may_change().map_err(|why| format!("ERR {why}"))
}
