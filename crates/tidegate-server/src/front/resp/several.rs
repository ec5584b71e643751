//! `TG.TAKEALL`: several keys under several limits, all or none.

use tidegate::{AdHocAsk, Algorithm, Limit};

use super::ask::{Asked, Options, asked, unsigned};
use super::fields::binding;
use super::reply::echo;
use super::session::{Call, Refused};
use super::takes::limit_of;

/// Limits that stand or fall together: each shard of a map is locked for all of them.
pub(super) const MAX_TOGETHER: usize = 64;

/// `TG.TAKEALL n key LIMIT text [COST c] …`, n times
pub(super) fn take_all(call: &mut Call<'_, '_>) -> Refused {
    let asks = read(call)?;
    let limits: Vec<Limit> = asks.iter().map(|asked| limit_of(asked.text)).collect::<Result<_, _>>()?;
    if limits.iter().any(|limit| limit.algorithm() == Algorithm::Concurrency) {
        return Err("ERR TG.TAKEALL tells no permits; take under a concurrency limit by TG.TAKE".to_owned());
    }
    let together: Vec<_> = asks
        .iter()
        .zip(&limits)
        .map(|(asked, limit)| AdHocAsk { key: asked.key, limit, ask: asked.ask })
        .collect();
    let decisions = call.post.engine.adhoc.take_all(&together);
    let index = decisions.binding().unwrap_or(0);
    if let Some(decision) = decisions.each().get(index) {
        call.post.meter().decided(decision);
        binding(&mut call.replies, decision, index);
    }
    Ok(())
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
