//! Servers on one store in memory, each with the limit that it has read.

use std::fmt;
use std::sync::Arc;

use tidegate::{
    Algorithm, Ask, Clock, Decision, Key, Limit, ManualClock, Map, PreparedLimit, State, Subject, Timestamp,
    Zone,
};

use super::{SERVERS, Versions};

/// The rule whose numbers change.
const RULE: &str = "rule";

/// A store that servers share.
pub trait Shared: fmt::Debug {
    /// The name in a message.
    const NAME: &'static str;

    /// Returns false if states under this limit lie in another place than those under limits of its algorithm that are
    /// in use, so that nothing is carried.
    fn carries(limit: &Limit) -> bool;

    /// An empty store on this clock.
    fn empty(clock: Arc<dyn Clock>) -> Self;

    /// Decides, and spends if allowed.
    fn take(&self, subject: Subject<'_>, ask: Ask) -> Decision;

    /// Decides without spending.
    fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision;

    /// The stored state.
    fn state(&self, subject: Subject<'_>) -> State;
}

macro_rules! shared {
    ($($store:ident $name:literal: $empty:expr, $carries:expr;)+) => {$(
        impl Shared for $store {
            const NAME: &'static str = $name;

            fn carries(limit: &Limit) -> bool {
                $carries(limit)
            }

            fn empty(clock: Arc<dyn Clock>) -> $store {
                $empty(clock)
            }

            fn take(&self, subject: Subject<'_>, ask: Ask) -> Decision {
                $store::take(self, subject, ask).0
            }

            fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
                $store::peek(self, subject, ask)
            }

            fn state(&self, subject: Subject<'_>) -> State {
                $store::state(self, subject)
            }
        }
    )+};
}

shared! {
    Map "map": |clock| Map::with_clock(clock).max_keys(4096), |_: &Limit| true;
    Zone "zone": |clock| Zone::with_clock(1 << 16, clock), in_cells;
}

/// Windows that do not fit a cell lie in the map beside the zone.
fn in_cells(limit: &Limit) -> bool {
    limit.algorithm() != Algorithm::FixedWindow || Zone::new(0).keeps(limit)
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

impl<S: Shared> Default for OnStore<S> {
    fn default() -> OnStore<S> {
        let clock = Arc::new(ManualClock::new());
        let store = S::empty(clock.clone());
        OnStore { store, clock, key: Key::new("k"), servers: Default::default(), strangers: 0 }
    }
}

impl<S: Shared> OnStore<S> {
    fn on<R>(&self, server: usize, ask: impl FnOnce(Subject<'_>) -> R) -> R {
        let limit = self.servers[server].as_ref().expect("a server announces its limit first");
        ask(limit.subject(&self.key))
    }
}

impl<S: Shared> Versions for OnStore<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn holds(&self, limit: &Limit) -> bool {
        S::carries(limit)
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
        self.on(server, |subject| self.store.take(subject, ask))
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
