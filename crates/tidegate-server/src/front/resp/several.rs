//! `TG.TAKEALL`: several keys under several limits, all or none.

use tidegate::{AdHocAsk, Algorithm, Decision, Decisions, Key};

use super::ask::{Asked, Options, asked, unsigned};
use super::command::Command;
use super::fields::binding;
use super::later::written;
use super::reply::{Replies, UNDECIDED, echo};
use super::session::{Call, Refused};
use crate::answer::{Answer, MEMORY, Told};
use crate::dynamic::DynamicLimit;
use crate::elsewhere;
use crate::meter::Meter;

/// Limits that stand or fall together: each shard of a map is locked for all of them.
pub(super) const MAX_TOGETHER: usize = 64;

/// `TG.TAKEALL n key LIMIT text [COST c] …`, n times
pub(super) fn take_all(call: &mut Call<'_, '_>) -> Refused {
    let asks = read(call)?;
    let mut limit_of = |asked: &Asked<'_>| call.takes.limit_of_text(asked.text, &call.post.engine).cloned();
    let limits: Vec<_> = asks.iter().map(&mut limit_of).collect::<Result<_, _>>()?;
    if limits.iter().any(|limit| limit.limit().algorithm() == Algorithm::Concurrency) {
        return Err("ERR TG.TAKEALL tells no permits; take under a concurrency limit by TG.TAKE".to_owned());
    }
    if call.session.later.is_some() {
        take_elsewhere(call, &asks, &limits);
        return Ok(());
    }
    let together: Vec<_> = asks
        .iter()
        .zip(&limits)
        .map(|(asked, limit)| AdHocAsk { key: asked.key, limit: limit.whole(), ask: asked.ask })
        .collect();
    let decisions = call.post.engine.adhoc.take_all(&together);
    tell(&mut call.replies, (decisions.each(), MEMORY), call.post.meter());
    Ok(())
}

fn take_elsewhere(call: &mut Call<'_, '_>, asks: &[Asked<'_>], limits: &[DynamicLimit]) {
    let asks = asks.iter().zip(limits).map(|(asked, limit)| elsewhere::Asked {
        key: Key::new(asked.key),
        limit: limit.clone(),
        ask: asked.ask,
    });
    let (post, protocol, asks) = (call.post.clone(), call.session.protocol, asks.collect::<Vec<_>>());
    call.answer_when_known(Command::TakeAll, async move {
        let decided = post.engine.take_all(&asks, post.meter()).await;
        written(protocol, |replies| tell(replies, (&decided.each, decided.by), post.meter()))
    });
}

/// Tells the decision that speaks for all.
fn tell(replies: &mut Replies<'_>, (each, by): (&[Decision], &'static str), meter: &Meter) {
    let index = Decisions::binding_of(each).unwrap_or(0);
    match each.get(index) {
        Some(decision) => {
            meter.decided(decision);
            binding(replies, Told::from(Answer(*decision)).by(by), index);
        }
        None => replies.error(UNDECIDED),
    }
}

fn read<'a>(call: &Call<'a, '_>) -> Result<Vec<Asked<'a>>, String> {
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
    use super::super::reply::Protocol;
    use super::*;

    #[test]
    fn a_command_about_which_nothing_was_decided_is_an_error_and_not_silence() {
        let replied = written(Protocol::Resp2, |replies| tell(replies, (&[], MEMORY), &Meter::default()));
        assert!(replied.starts_with(b"-ERR nothing was decided"), "{}", replied.escape_ascii());
    }
}
