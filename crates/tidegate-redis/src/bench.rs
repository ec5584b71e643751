//! The calls of a store, for benchmarks of their cost on a server.

use std::sync::Arc;

use tidegate_core::{Ask, Subject};

use crate::exchange::Question;
use crate::script::{self, Bid, TakeAsk, Target, Time, Unsupported};

/// Returns the text of the script that takes all or none of these, and the exact bytes of its call.
pub fn take(asks: &[(Subject<'_>, Ask)], prefix: &str) -> Result<(&'static str, Vec<u8>), String> {
    let bid = |(subject, ask): &(Subject<'_>, Ask)| {
        Ok(Bid::new(Target::new(prefix.as_bytes(), &subject.prepared_limit(), subject.key())?, *ask))
    };
    let bids: Result<_, Unsupported> = asks.iter().map(bid).collect();
    let ask = TakeAsk::new(bids.map_err(|error| error.to_string())?);
    let call = script::take(&[ask], Time::Server);
    let text = call.script.text.as_str();
    Ok((text, Question::Run(Arc::new(call)).command(false).get_packed_command()))
}
