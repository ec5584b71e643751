//! What was asked, and what came of it.

use std::time::Duration;

use testbed::Decided;

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// When it should have been asked.
    pub(super) due: Duration,
    pub(super) decided: Decided,
}

/// All requests, or some of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    pub(super) calls: Vec<Call>,
    /// Those without any answer.
    pub(super) errors: u64,
}

impl Calls {
    pub(super) fn len(&self) -> u64 {
        self.calls.len() as u64
    }

    /// Those that were asked and answered between these times.
    pub(super) fn between(&self, from: Duration, to: Duration) -> Calls {
        let is_in = |call: &&Call| call.decided.asked >= from && call.decided.answered <= to;
        Calls { calls: self.calls.iter().filter(is_in).cloned().collect(), errors: 0 }
    }

    pub(super) fn decided(&self) -> impl Iterator<Item = &Decided> {
        self.calls.iter().map(|call| &call.decided)
    }

    /// How long each took after it was asked.
    pub(super) fn took(&self) -> Vec<Duration> {
        self.decided().map(|decided| decided.answered - decided.asked).collect()
    }

    /// How long after it was due each was asked at last.
    pub(super) fn unasked(&self) -> Vec<Duration> {
        self.calls.iter().map(|call| call.decided.asked.saturating_sub(call.due)).collect()
    }

    /// How long each took after it was due.
    pub(super) fn late(&self) -> Vec<Duration> {
        self.calls.iter().map(|call| call.decided.answered.saturating_sub(call.due)).collect()
    }
}
