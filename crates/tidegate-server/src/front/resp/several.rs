//! `TG.TAKEALL`: several keys under several limits, all or none.
//!
//! The reply has the fields of the binding decision: the denial with the longest wait, or else the one with the
//! smallest fraction remaining. Its index is in `binding`.

use tidegate::{Algorithm, Decisions, Key};

use super::ask::{self, Options, asked, unsigned};
use super::fields::binding;
use super::pending::CommandOrder;
use super::reply::{Replies, UNDECIDED, echo};
use super::session::{Call, CommandResult};
use crate::engine::{Decided, TakeRequest};
use crate::meter::Meter;
use crate::worker::WorkerContext;

/// The maximum number of limits of one command. A map locks the shards of all of their keys at once.
pub(super) const MAX_TOGETHER: usize = 64;

/// `TG.TAKEALL n key LIMIT text [COST c] …`, n times: spends under all limits if all allow it. Rejects concurrency
/// limits, since its reply has no permits.
pub(super) fn take_all(call: &mut Call<'_, '_>) -> CommandResult {
    let asks = read(call)?;
    let keys: Vec<_> = asks.iter().map(|asked| asked.key.to_vec()).collect();
    let mut prepare = |asked: &ask::ParsedAsk<'_>| {
        let limit = call.takes.limit_of_text(asked.text, &call.worker.engine)?.clone();
        Ok(TakeRequest { key: Key::new(asked.key), limit, ask: asked.ask })
    };
    let asks: Vec<_> = asks.iter().map(&mut prepare).collect::<Result<_, String>>()?;
    if asks.iter().any(|asked| asked.limit.limit().algorithm() == Algorithm::Concurrency) {
        return Err("ERR TG.TAKEALL returns no permits; use TG.TAKE for a concurrency limit".to_owned());
    }
    let worker = call.worker.clone();
    call.ask(
        CommandOrder::Together,
        |worker| async move { worker.engine.take_all(&asks).await },
        move |replies, decisions| {
            tell(replies, &decisions, worker.meter());
            count(&keys, &decisions, &worker);
            None
        },
    );
    Ok(())
}

/// Writes the binding decision.
///
/// Without any decision it is an error: a command without a reply would shift those of later commands.
fn tell(replies: &mut Replies<'_>, decisions: &Decisions, meter: &Meter) {
    let index = decisions.binding().unwrap_or(0);
    match Decided::at(index, decisions) {
        Some(decided) => {
            meter.decided(&decided.decision);
            binding(replies, decided.into(), index);
        }
        None => replies.error(UNDECIDED),
    }
}

/// Counts the keys of a request: all of them if it was allowed, else those that denied it.
fn count(keys: &[Vec<u8>], decisions: &Decisions, worker: &WorkerContext) {
    for (at, key) in keys.iter().enumerate() {
        let decided = Decided::at(at, decisions);
        let is_counted = |decided: &Decided| decisions.is_allowed() || !decided.decision.is_allowed();
        if let Some(decided) = decided.filter(is_counted) {
            worker.count_key(key, &decided);
        }
    }
}

/// Reads the limits of the command. The first word is their number.
fn read<'a>(call: &Call<'a, '_>) -> Result<Vec<ask::ParsedAsk<'a>>, String> {
    let count =
        unsigned(call.words.get(1).unwrap_or_default(), "TG.TAKEALL begins with how many limits there are")?;
    if !(1..=MAX_TOGETHER as u64).contains(&count) {
        return Err(format!("ERR TG.TAKEALL takes 1 to {MAX_TOGETHER} limits, not {count}"));
    }
    let (mut at, mut asks) = (2, Vec::new());
    for _ in 0..count {
        let next = asked(call.words.from(at), Options::Cost)?;
        at += next.words;
        asks.push(next);
    }
    match call.words.get(at) {
        None => Ok(asks),
        Some(word) => Err(format!("ERR unexpected '{}' behind {count} limits", echo(word))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::pending::written;
    use super::super::reply::Protocol;
    use super::*;

    #[test]
    fn a_command_about_which_nothing_was_decided_is_an_error_and_not_silence() {
        let replied =
            written(Protocol::Resp2, |replies| tell(replies, &Vec::new().into(), &Meter::default()));
        assert!(replied.starts_with(b"-ERR nothing was decided"), "{}", replied.escape_ascii());
    }
}
