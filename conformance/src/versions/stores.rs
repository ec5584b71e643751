//! Servers on one store in memory, each with the limit that it has read.

use std::sync::Arc;

use tidegate::{
    Algorithm, Ask, Decision, Key, Limit, ManualClock, PreparedLimit, State, Subject, Timestamp, Zone,
};

use super::{SERVERS, Versions};
use crate::keeper::Sheltering;

/// The rule whose numbers change.
const RULE: &str = "rule";

/// Returns false if states under this limit lie in another place than those under limits of its algorithm that are in
/// use, so that nothing is carried: windows that do not fit a cell lie in the map beside a zone.
pub fn carries<S: Sheltering>(limit: &Limit) -> bool {
    S::HOLDS_ALL || limit.algorithm() != Algorithm::FixedWindow || Zone::new(0).keeps(limit)
}

/// Servers on one store.
#[derive(Debug)]
pub struct OnStore<S> {
    store: S,
    clock: Arc<ManualClock>,
    key: Key,
    servers: [Option<PreparedLimit>; SERVERS],
    strangers: u64,
}

impl<S: Sheltering> Default for OnStore<S> {
    fn default() -> OnStore<S> {
        let clock = Arc::new(ManualClock::new());
        let store = S::empty(clock.clone());
        OnStore { store, clock, key: Key::new("k"), servers: Default::default(), strangers: 0 }
    }
}

impl<S: Sheltering> OnStore<S> {
    fn on<R>(&self, server: usize, ask: impl FnOnce(Subject<'_>) -> R) -> R {
        let limit = self.servers[server].as_ref().expect("a server announces its limit first");
        ask(limit.subject(&self.key))
    }
}

impl<S: Sheltering> Versions for OnStore<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn holds(&self, limit: &Limit) -> bool {
        carries::<S>(limit)
    }

    /// Others come and go meanwhile, so that clear states are dropped.
    fn set_time(&mut self, now: Timestamp) {
        self.clock.set(now);
        let limit = Limit::per_second(1_000_000);
        for _ in 0..4 {
            self.strangers += 1;
            let key = Key::new(self.strangers % 1000);
            let _ = self.store.take(Subject::new("strangers", &key, &limit), Ask::ONE);
        }
    }

    fn announce(&mut self, server: usize, limit: &Limit) {
        // Each reading of the rules prepares them anew, also if the numbers are those of before.
        self.servers[server] = Some(PreparedLimit::of_rule(RULE, *limit));
        let _ = self.on(server, |subject| self.store.peek(subject, Ask::ONE));
    }

    fn take(&mut self, server: usize, ask: Ask) -> Decision {
        self.on(server, |subject| self.store.take(subject, ask).0)
    }

    fn peek(&self, server: usize, ask: Ask) -> Decision {
        self.on(server, |subject| self.store.peek(subject, ask))
    }

    fn state(&self, limit: &Limit) -> State {
        // Permits of a rule are one set, under a name of its own: it is read by the rule's limit.
        let of_rule = self.servers.iter().flatten().find(|server| server.is_one_set());
        match of_rule {
            Some(rule) => self.store.state(rule.subject(&self.key)),
            None => self.store.state(Subject::new(RULE, &self.key, limit)),
        }
    }
}
