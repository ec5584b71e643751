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

use tidegate_rules::{Attributes, RuleKey};

use super::fields::{self, ReplyLimits};
use super::parse::Words;
use super::pending::CommandOrder;
use super::reply::echo;
use super::session::{Call, CommandResult};
use super::{admit, ask};

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
    if admit::read(call.words.from(3), &mut attributes)? == ReplyLimits::All {
        return Err("ERR ALL is for TG.ADMIT: a peek under a rule has one limit; leave it out".to_owned());
    }
    let key = key(call, &attributes)?;
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
    admit::put_all(call.words.from(3), last.saturating_sub(3), &mut attributes)?;
    let key = key(call, &attributes)?;
    call.ask(
        CommandOrder::Alone,
        |worker| async move { worker.engine.adjust_rule_key(&key, adjustment).await },
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
    admit::put_all(words, words.len(), &mut attributes)?;
    let key = key(call, &attributes)?;
    call.ask(CommandOrder::Alone, |_| async move { key.reset().await }, ask::integer);
    Ok(())
}

/// Returns the key of the rule in the second argument that these attributes name.
fn key(call: &Call<'_, '_>, attributes: &Attributes<'_>) -> Result<RuleKey, String> {
    let name = call.words.get(2).unwrap_or_default();
    let rule = std::str::from_utf8(name).map_err(|_| {
        format!("ERR rule '{}': the name of a rule is text; name one that is in force", echo(name))
    })?;
    call.worker.engine.gate().rule_key(rule, attributes).map_err(|error| format!("ERR {error}"))
}

/// Returns an error on a server without a token: any local process could change what holds for others.
fn may_change(call: &Call<'_, '_>) -> CommandResult {
    call.worker.engine.may_change().map_err(|why| format!("ERR {why}"))
}
