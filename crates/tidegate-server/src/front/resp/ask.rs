//! `TG.TAKE` and the other commands about one key under one limit.
//!
//! The commands read a key, a limit and options, and leave the order of replies to [`Call::ask`]. A limit is parsed
//! once per text and thread.

use tidegate::{Adjustment, Ask, Cost, Key, PreparedLimit, StoreError};
use tokio::task::yield_now;

use super::fields::{adjusted, decided};
use super::parse::Words;
use super::pending::{CommandOrder, written};
use super::reply::{Replies, echo};
use super::rule_key;
use super::session::{Call, CommandResult};
use super::stretch::STRETCH_KEYS;
use super::takes::Style;
use super::throttle::too_long;
use crate::engine::not_available;
use crate::permit::{Lease, Permits};
use crate::settings::MAX_KEY_BYTES;

/// A parsed ask: the key and the text of the limit as they were sent, with the options.
#[derive(Debug)]
pub(super) struct ParsedAsk<'a> {
    /// The key: any bytes.
    pub(super) key: &'a [u8],
    /// The text of the limit.
    pub(super) text: &'a [u8],
    /// The cost and the longest acceptable wait.
    pub(super) ask: Ask,
    /// The number of words that were read.
    pub(super) words: usize,
}

/// The options that are accepted after the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Options {
    /// `COST` and `MAXWAIT`, in any order.
    CostAndMaxWait,
    /// `COST` only: an all-or-none take cannot wait.
    Cost,
}

/// `TG.TAKE key LIMIT text [COST n] [MAXWAIT ms]`: decides, and spends if allowed.
///
/// The take is batched with those after it, if the store is in memory.
pub(super) fn take(call: &mut Call<'_, '_>) -> CommandResult {
    let asked = only(call)?;
    call.takes.limit_of_text(asked.text, &call.worker.engine)?;
    call.take(1, asked.ask, Style::Fields);
    Ok(())
}

/// `TG.PEEK key LIMIT text [COST n] [MAXWAIT ms]`: decides like `TG.TAKE`, and spends nothing.
///
/// The reply has the fields of `TG.TAKE`, without a permit.
pub(super) fn peek(call: &mut Call<'_, '_>) -> CommandResult {
    if rule_key::names_a_rule(call.words) {
        return rule_key::peek(call);
    }
    let asked = only(call).map_err(|error| or_rule(error, call.words, 0))?;
    let limit = limit_of(call, asked.text)?;
    let (key, ask, of) = (asked.key.to_vec(), asked.ask, *limit.limit());
    let looked_at = Key::new(&key);
    call.ask(
        CommandOrder::Alone,
        move |worker| async move { worker.engine.peek(&looked_at, &limit, ask).await },
        move |replies, looked| {
            decided(replies, &looked, &of, &key);
            None
        },
    );
    Ok(())
}

/// `TG.ADJUST key LIMIT text n`: charges a positive number, refunds a negative one. Rejects 0.
///
/// The reply has the fields of an ask of cost 1 afterwards, and `adjusted`: `whole`, `capped` or `needs-permit`.
pub(super) fn adjust(call: &mut Call<'_, '_>) -> CommandResult {
    if rule_key::names_a_rule(call.words) {
        return rule_key::adjust(call);
    }
    let (key, text) = under(call.words.from(1)).map_err(|error| or_rule(error, call.words, 1))?;
    let number = call.words.get(4).ok_or("ERR the number of units is missing; write key LIMIT text n")?;
    if let Some(word) = call.words.get(5) {
        return Err(format!("ERR unexpected '{}'; write key LIMIT text n", echo(word)));
    }
    let adjustment = adjustment(number)?;
    let (limit, key) = (limit_of(call, text)?, Key::new(key));
    call.ask(
        CommandOrder::Alone,
        move |worker| async move { worker.engine.adjust(&key, &limit, adjustment).await },
        |replies, (went, left)| {
            adjusted(replies, left.into(), went);
            None
        },
    );
    Ok(())
}

/// Parses the number of units of an adjustment: positive to charge, negative to refund.
pub(super) fn adjustment(number: &[u8]) -> Result<Adjustment, String> {
    let (gives_back, digits) = match number {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let cost = Cost::new(unsigned(digits, "TG.ADJUST takes a whole number")?).map_err(
        |_| "ERR adjusting by 0 changes nothing; a positive number charges, a negative one gives back",
    )?;
    Ok(if gives_back { Adjustment::Refund(cost) } else { Adjustment::Charge(cost) })
}

/// `TG.RELEASE permit` and `TG.RENEW permit`: reply 1 if all of its leases were still valid, else 0.
///
/// An invalid text is an error. A permit that has expired is not: the reply is 0.
pub(super) fn lease(call: &mut Call<'_, '_>, lease: Lease) -> CommandResult {
    let permits = permits(call.words)?;
    call.ask(
        CommandOrder::Alone,
        move |worker| async move { permits.change(lease, &worker.engine).await },
        integer,
    );
    Ok(())
}

/// `TG.RESET key [LIMIT text]`: replies 1 if the key had state, under this limit or under any, else 0.
///
/// With a remote store, a reset under all limits needs their list. While the store has not read it, the reply is an
/// error that names `TG.RESET key LIMIT text`.
pub(super) fn reset(call: &mut Call<'_, '_>) -> CommandResult {
    if call.words.len() == 2 {
        return delete(call);
    }
    if rule_key::names_a_rule(call.words) {
        return rule_key::reset(call);
    }
    let (key, text) = under(call.words.from(1)).map_err(|error| or_rule(error, call.words, 0))?;
    if let Some(word) = call.words.get(4) {
        return Err(format!("ERR unexpected '{}'; write key [LIMIT text]", echo(word)));
    }
    let (limit, key) = (limit_of(call, text)?, Key::new(key));
    call.ask(
        CommandOrder::Alone,
        move |worker| async move { worker.engine.reset_limit(&key, &limit).await },
        integer,
    );
    Ok(())
}

/// Writes 1 for true, 0 for false.
pub(super) fn integer(replies: &mut Replies<'_>, is_so: bool) -> Option<Permits> {
    replies.integer(is_so.into());
    None
}

/// `DEL key …`: replies the number of keys that had state. The keys are deleted a stretch at a time; other connections
/// are served between two stretches.
///
/// The first error is the reply; the other keys are deleted all the same.
pub(super) fn delete(call: &mut Call<'_, '_>) -> CommandResult {
    let keys = call.words.from(1);
    if let Some(long) = keys.iter().find(|key| key.len() > MAX_KEY_BYTES) {
        return Err(too_long(long));
    }
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(keys.len()));
    for key in keys.iter() {
        bytes.extend_from_slice(key);
        ends.push(bytes.len());
    }
    let held_bytes = bytes.capacity() + ends.capacity() * size_of::<usize>();
    call.session.stretch.visit(keys.len().min(STRETCH_KEYS));
    let (worker, protocol) = (call.worker.clone(), call.session.protocol);
    call.session.answer_when_known(&mut call.replies, CommandOrder::Alone, async move {
        let (mut known, mut begin) = (Ok(0), 0);
        for (nth, end) in ends.into_iter().enumerate() {
            if nth > 0 && nth.is_multiple_of(STRETCH_KEYS) {
                // The first poll, in `answer_when_known`, ends at the first yield. The connection polls again at once,
                // so it is the second yield that pauses.
                yield_now().await;
                yield_now().await;
            }
            let key = Key::new(&bytes[begin..end]);
            begin = end;
            known = match (known, worker.engine.reset(&key).await) {
                (Ok(known), Ok(was_known)) => Ok(known + i64::from(was_known)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
        }
        written(protocol, |replies| match known {
            Ok(known) => replies.integer(known),
            Err(error) => replies.error(&not_deleted(&error)),
        })
        .into()
    });
    call.session.later.hold(held_bytes);
    Ok(())
}

/// Returns the error about keys that were not deleted.
///
/// If the store cannot list all limits of a key, the error names the command that resets one limit.
fn not_deleted(error: &StoreError) -> String {
    let how = if error.is_unfit() { ": TG.RESET key LIMIT text" } else { "" };
    format!("ERR {}{how}", not_available(error))
}

/// Returns the limit of this text, prepared for the engine. Fails if the text is invalid or the engine does not support
/// it.
fn limit_of(call: &mut Call<'_, '_>, text: &[u8]) -> Result<PreparedLimit, String> {
    call.takes.limit_of_text(text, &call.worker.engine).cloned()
}

/// Reads an ask that has to be the whole command.
///
/// A word that is left over is an error: a misspelled option must not be ignored.
fn only<'a>(call: &Call<'a, '_>) -> Result<ParsedAsk<'a>, String> {
    let words = call.words.from(1);
    let asked = asked(words, Options::CostAndMaxWait)?;
    match words.get(asked.words) {
        None => Ok(asked),
        Some(word) => {
            Err(format!("ERR unexpected '{}'; write key LIMIT text [COST n] [MAXWAIT ms]", echo(word)))
        }
    }
}

/// Reads an ask from the beginning of these words. Stops at the first word that is not an option.
///
/// `COST` has to be at least 1. Options may be repeated; the last one counts.
pub(super) fn asked(words: Words<'_>, options: Options) -> Result<ParsedAsk<'_>, String> {
    let (key, text) = under(words)?;
    let mut asked = ParsedAsk { key, text, ask: Ask::ONE, words: 3 };
    while let (Some(option), Some(value)) = (words.get(asked.words), words.get(asked.words + 1)) {
        if option.eq_ignore_ascii_case(b"COST") {
            let units = unsigned(value, "COST takes a whole number")?;
            asked.ask.cost = Cost::new(units)
                .map_err(|_| "ERR COST is at least 1; TG.PEEK looks without spending".to_owned())?;
        } else if option.eq_ignore_ascii_case(b"MAXWAIT") && options == Options::CostAndMaxWait {
            let ms = unsigned(value, "MAXWAIT takes whole milliseconds")?;
            asked.ask = asked.ask.max_wait(std::time::Duration::from_millis(ms));
        } else {
            break;
        }
        asked.words += 2;
    }
    Ok(asked)
}

/// Returns the key and the text of the limit at the beginning of these words.
///
/// The error shows the expected form, since `LIMIT` is the word that is forgotten most easily.
fn under(words: Words<'_>) -> Result<(&[u8], &[u8]), String> {
    match (words.get(0), words.get(1), words.get(2)) {
        (Some(key), _, _) if key.len() > MAX_KEY_BYTES => Err(too_long(key)),
        (Some(key), Some(limit), Some(text)) if limit.eq_ignore_ascii_case(b"LIMIT") => Ok((key, text)),
        (_, Some(other), _) if !other.eq_ignore_ascii_case(b"LIMIT") => Err(format!(
            "ERR expected LIMIT behind the key, found '{}'; write key LIMIT \"30/60s burst 15\"",
            echo(other)
        )),
        _ => Err("ERR a limit is missing; write key LIMIT \"30/60s burst 15\"".to_owned()),
    }
}

/// Adds the form with `RULE` to an error about a missing `LIMIT`, if the words fit it: a rule, then names and values in
/// turn, then `last` words.
#[cold]
fn or_rule(error: String, words: Words<'_>, last: usize) -> String {
    let is_limit = words.get(2).is_some_and(|word| word.eq_ignore_ascii_case(b"LIMIT"));
    let pairs = words.len().saturating_sub(2 + last);
    if is_limit || pairs == 0 || !pairs.is_multiple_of(2) {
        return error;
    }
    let rule = words.get(1).unwrap_or_default();
    format!("{error}, or RULE {} and the same words for a key of a rule", echo(rule))
}

/// Parses the permits of a command.
fn permits(words: Words<'_>) -> Result<Permits, String> {
    let text = words.get(1).unwrap_or_default();
    Permits::parse(text).ok_or_else(|| {
        format!("ERR '{}' is no permit; TG.TAKE under a concurrency limit returns one", echo(text))
    })
}

/// Parses a whole number of at least 0.
///
/// `what` says in the error which number is expected.
pub(super) fn unsigned(word: &[u8], what: &str) -> Result<u64, String> {
    let text = std::str::from_utf8(word).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    text.and_then(|text| text.parse().ok()).ok_or_else(|| format!("ERR {what}, not '{}'", echo(word)))
}
