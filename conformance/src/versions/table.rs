//! The first servers to be judged: the pure functions, with a table of limits and a state for each around them.

use std::collections::HashMap;

use tidegate::{Algorithm, Ask, Begun, Decision, History, Limit, OwnDecision, Predecessor, State, Timestamp};

use super::{SERVERS, Versions};

/// The numbers that name a state; of permits, whose holders are one set, only the algorithm.
type Name = (Algorithm, [u64; 5]);

/// States in a map that forgets nothing.
#[derive(Clone, Debug, Default)]
pub struct Table {
    now: Timestamp,
    states: HashMap<Name, State>,
    /// Each limit and the time at which it came into force, newest first.
    limits: Vec<(Limit, Timestamp)>,
    servers: [Option<(Limit, History)>; SERVERS],
}

impl Table {
    /// Returns the states with which the key begins on this server; none if it has a live state.
    fn begun(&self, limit: &Limit, history: &History) -> Begun {
        if limit.clear_at(&Versions::state(self, limit)) > self.now {
            return Begun::FULL;
        }
        history.begin(limit, self.now, |_, before| self.stored(before.algorithm(), before.numbers()))
    }

    /// The decision about a live state, as it is reported.
    fn report(&self, server: usize, decision: Decision, ask: Ask) -> Decision {
        let (limit, history) = self.server(server);
        let own = Versions::state(self, limit);
        let own = OwnDecision::new(&own, decision, self.now, ask);
        history.report(limit, own, |_, before| self.stored(before.algorithm(), before.numbers()))
    }

    fn stored(&self, algorithm: Algorithm, numbers: [u64; 5]) -> State {
        self.states.get(&name(algorithm, numbers)).cloned().unwrap_or_default()
    }

    fn server(&self, server: usize) -> (&Limit, &History) {
        let (limit, history) = self.servers[server].as_ref().expect("a server announces its limit first");
        (limit, history)
    }
}

impl Versions for Table {
    fn name(&self) -> &'static str {
        "pure"
    }

    fn set_time(&mut self, now: Timestamp) {
        self.now = now;
    }

    fn announce(&mut self, server: usize, limit: &Limit) {
        let is = |known: &Limit| known.algorithm() == limit.algorithm() && known.numbers() == limit.numbers();
        if !self.limits.first().is_some_and(|(newest, _)| is(newest)) {
            self.limits.retain(|(known, _)| !is(known));
            self.limits.insert(0, (*limit, self.now));
        }
        let before = self.limits[1..].iter().map(|(before, since)| Predecessor::new(before, *since));
        self.servers[server] = Some((*limit, History::new(self.limits[0].1, before.collect())));
    }

    fn take(&mut self, server: usize, ask: Ask) -> Decision {
        let (limit, history) = self.server(server);
        let (limit, begun) = (*limit, self.begun(limit, history));
        let own = Versions::state(self, &limit);
        let mut state = if begun.is_full() { own } else { begun.state_for(&limit, self.now, ask) };
        let decision = limit.decide(&mut state, self.now, ask);
        let is_written = decision.is_allowed() || limit.counts_denied();
        if is_written {
            self.states.insert(name(limit.algorithm(), limit.numbers()), state);
        }
        match decision.is_allowed() {
            false if !begun.is_full() && !is_written => begun.peek(&limit, self.now, ask),
            _ => self.report(server, decision, ask),
        }
    }

    fn peek(&self, server: usize, ask: Ask) -> Decision {
        let (limit, history) = self.server(server);
        let begun = self.begun(limit, history);
        if !begun.is_full() {
            return begun.peek(limit, self.now, ask);
        }
        self.report(server, limit.peek(&Versions::state(self, limit), self.now, ask), ask)
    }

    fn state(&self, limit: &Limit) -> State {
        self.stored(limit.algorithm(), limit.numbers())
    }
}

fn name(algorithm: Algorithm, numbers: [u64; 5]) -> Name {
    (algorithm, if algorithm == Algorithm::Concurrency { [0; 5] } else { numbers })
}
