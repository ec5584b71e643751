//! The laws of a rule whose numbers change, while servers with the old numbers still run.
//!
//! ```text
//!   server 0   A A A A | B B B B | A A A ...     at each change one limit comes into force,
//!   server 1   A A A A   A A | B B B B B ...     and other servers follow later
//!   server 2   A A A A   A A A A A A ...
//! ```
//!
//! All servers ask about one key. The laws are written from the page of laws, I-1, I-3 to I-6, I-13 and I-15, and
//! know nothing of how counts are carried: they see the answers, the stored states as opaque words, and a list of what
//! each limit has admitted.

mod admitted;
mod change;
mod judge;
mod play;
mod stores;
mod table;

pub use play::{Histories, HistoryClock};
pub use stores::{OnStore, carries};
pub use table::Table;

use tidegate::{Ask, Cost, Decision, Limit, State, Ticks, Timestamp, Verdict};

use crate::law::promises::{lower, raise, unit_of};
use crate::oracle::{self, Admitted, Oracle};
use crate::promise::Promise;
use crate::random::Random;

/// Servers that share the states of one rule, seen from one key. Time stands still unless it is set.
pub trait Versions {
    /// The name in a message.
    fn name(&self) -> &'static str;

    /// The least time by which the clock can be moved, in ticks.
    fn resolution(&self) -> u64 {
        1
    }

    /// The number of servers; a single one always has the newest numbers.
    fn servers(&self) -> usize {
        SERVERS
    }

    /// Returns false if the servers hold this limit only with other numbers.
    fn holds(&self, _: &Limit) -> bool {
        true
    }

    /// Sets the clock; it never goes back.
    fn set_time(&mut self, now: Timestamp);

    /// A server decides by this limit from now on. If it is not the newest of the rule, it comes into force now.
    fn announce(&mut self, server: usize, limit: &Limit);

    /// A server decides, and spends if allowed.
    fn take(&mut self, server: usize, ask: Ask) -> Decision;

    /// The answer of [`Versions::take`], without spending.
    fn peek(&self, server: usize, ask: Ask) -> Decision;

    /// The state that is stored for the key under this limit, whichever servers decide by it.
    fn state(&self, limit: &Limit) -> State;

    /// Returns true if each call is a round trip: then denials, peeks and figures are tried again after some asks only.
    fn is_remote(&self) -> bool {
        false
    }

    /// The states under several limits, of one algorithm, as of one instant.
    fn states(&self, limits: &[Limit]) -> Vec<State> {
        limits.iter().map(|limit| self.state(limit)).collect()
    }
}

/// The number of servers.
const SERVERS: usize = 3;
/// The number of admitted asks of each version in a message.
const LISTED_ASKS: usize = 6;

/// The counts of one history, by which a run shows that it met what it is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    /// Asks.
    pub asks: u64,
    /// Asks that were denied.
    pub denials: u64,
    /// Changes of the limit in force.
    pub changes: u64,
    /// Changes after which a key began with counts of the limit before.
    pub carried: u64,
    /// Asks decided by a server with old numbers.
    pub lagging: u64,
    /// Waits that were waited to the tick.
    pub waits: u64,
}

impl Met {
    /// Adds another history's.
    pub fn add(&mut self, other: Met) {
        self.asks += other.asks;
        self.denials += other.denials;
        self.changes += other.changes;
        self.carried += other.carried;
        self.lagging += other.lagging;
        self.waits += other.waits;
    }
}

/// Runs one random history on servers that have seen no key, and checks every law after every step.
pub fn keep_their_promises(
    servers: impl Versions,
    kind: &str,
    seed: u64,
    operations: u64,
) -> Result<Met, String> {
    let mut history = History::new(servers, kind, seed);
    for operation in 0..operations {
        history.step().map_err(|what| {
            let place =
                format!("operation {operation} of seed {seed} at {}t, {}", history.now, history.arm.name());
            format!("{what}\n{place}, servers on {:?} of{}", history.on, history.describe())
        })?;
    }
    Ok(history.met)
}

/// One limit that the rule has had.
struct Version {
    promise: Promise,
    limit: Limit,
    oracle: Box<dyn Oracle>,
    /// The time at which it last came into force.
    since: u64,
    /// Every ask that it has admitted, or counted.
    admitted: Vec<Admitted>,
    /// It has admitted nothing since it came into force, and had no live state then.
    untouched: bool,
    /// It began with more than it allows itself.
    exceeded: bool,
    /// Servers with old numbers have admitted under it since it was replaced.
    lagged: bool,
    /// It came into force again with a live state of its own, which does not count what was admitted in between.
    resumed: bool,
}

/// The states that were stored under every version, as words; none where the state was clear, which is the same. Of
/// holders those whose lease had ended are not among them.
#[derive(Debug, PartialEq)]
struct Stored(Vec<Option<Vec<u64>>>);

impl Stored {
    /// Returns true if the state under this version was worth something.
    fn is_live(&self, version: usize) -> bool {
        self.0[version].is_some()
    }
}

struct History<V> {
    arm: V,
    random: Random,
    kind: &'static str,
    now: u64,
    versions: Vec<Version>,
    /// The version that each server decides by.
    on: Vec<usize>,
    /// The servers that have not read the newest numbers, which may be those of before again.
    behind: Vec<bool>,
    /// The versions by the time at which they came into force, newest first.
    order: Vec<usize>,
    in_force: usize,
    /// The versions that had a live state when the limit in force replaced them.
    sources: Vec<usize>,
    /// The states under every version, as they were last read.
    states: Vec<State>,
    span: admitted::Span,
    met: Met,
}

impl<V: Versions> History<V> {
    fn new(arm: V, kind: &str, seed: u64) -> History<V> {
        let mut random = Random::new(seed);
        let kind = crate::promise::KINDS.into_iter().find(|known| *known == kind).expect("a known kind");
        let promise = modest(&arm, kind, &mut random);
        // Long enough after the epoch that a pacer never seen has saved all it can.
        let now = random.sized(1 << 52, u64::MAX / 4).next_multiple_of(arm.resolution());
        let span = admitted::Span::new(&promise);
        let servers = arm.servers();
        let mut history = History {
            arm,
            random,
            kind,
            now,
            versions: Vec::new(),
            on: vec![0; servers],
            behind: vec![false; servers],
            order: vec![0],
            in_force: 0,
            sources: Vec::new(),
            states: Vec::new(),
            span,
            met: Met::default(),
        };
        history.set_time(now);
        history.version(promise);
        (0..servers).for_each(|server| history.arm.announce(server, &promise.limit()));
        history
    }

    fn step(&mut self) -> Result<(), String> {
        match self.random.between(0, 99) {
            0..12 => self.change(),
            12..20 => {
                self.catch_up();
                Ok(())
            }
            _ => {
                self.pass_time();
                let server = if self.random.percent(60) { 0 } else { self.random.between(1, 2) as usize };
                self.ask(server.min(self.on.len() - 1))
            }
        }
    }

    /// The index of the version with these numbers, which are entered if they are new.
    fn version(&mut self, promise: Promise) -> usize {
        let limit = promise.limit();
        let known = self.versions.iter().position(|version| version.limit.numbers() == limit.numbers());
        known.unwrap_or_else(|| {
            // Holders of permits are one set, whichever server admitted them.
            let holders = self.versions.first().filter(|_| self.kind == "concurrency");
            let admitted = holders.map_or_else(Vec::new, |version| version.admitted.clone());
            self.versions.push(Version {
                promise,
                limit,
                oracle: oracle::of(&promise),
                since: self.now,
                admitted,
                untouched: true,
                exceeded: false,
                lagged: false,
                resumed: false,
            });
            self.versions.len() - 1
        })
    }

    /// A promise to come into force: one of before, a little more or less, another period, or any.
    fn other_promise(&mut self) -> Promise {
        let current = self.versions[self.in_force].promise;
        match self.random.between(0, 9) {
            0..3 => {
                let known = self.random.between(0, self.versions.len() as u64 - 1) as usize;
                self.versions[known].promise
            }
            3 => lower(&current).unwrap_or(current),
            4 => raise(&current).unwrap_or(current),
            _ => {
                let promise = modest(&self.arm, self.kind, &mut self.random);
                match (promise, current) {
                    // A holder keeps the lease that it was given: here all leases are of one length.
                    (Promise::Concurrency { max, .. }, Promise::Concurrency { lease, .. }) => {
                        Promise::Concurrency { max, lease }
                    }
                    _ => promise,
                }
            }
        }
    }

    /// Returns each version with its stored state, for a message; the newest first.
    fn describe(&self) -> String {
        let line = |index: &usize| {
            let Version { promise, limit, since, lagged, admitted, .. } = &self.versions[*index];
            let (state, last) = (self.arm.state(limit), admitted.iter().rev().take(LISTED_ASKS));
            let clear_at = limit.clear_at(&state);
            let last: Vec<_> = last.map(|ask| format!("{} at {}", ask.units, ask.asked)).collect();
            format!(
                "\n  {index}: {promise:?} since {since}, lagged: {lagged}, clear at {clear_at:?}: {state:?}, \
                 admitted last {last:?}"
            )
        };
        self.order.iter().map(line).collect()
    }

    /// A server with old numbers reads the new ones.
    fn catch_up(&mut self) {
        if self.on.len() == 1 {
            return;
        }
        let server = self.random.between(1, self.on.len() as u64 - 1) as usize;
        (self.on[server], self.behind[server]) = (self.in_force, false);
        let limit = self.versions[self.in_force].limit;
        self.arm.announce(server, &limit);
    }

    fn set_time(&mut self, now: u64) {
        self.now = now;
        self.arm.set_time(Timestamp::from_ticks(now));
    }

    fn pass_time(&mut self) {
        let server = self.random.between(0, self.on.len() as u64 - 1) as usize;
        let unit = unit_of(&self.versions[self.on[server]].promise);
        let passed = match self.random.between(0, 9) {
            0..4 => 0,
            4 => self.random.between(1, 2),
            5 => unit,
            6..9 => self.random.sized(0, unit.saturating_mul(3)),
            _ => self.random.sized(0, unit.saturating_mul(40)),
        };
        self.set_time((self.now + passed).next_multiple_of(self.arm.resolution()));
    }

    /// Reads the states stored under every version.
    fn stored(&mut self) -> Stored {
        let limits: Vec<_> = self.versions.iter().map(|version| version.limit).collect();
        self.states = self.arm.states(&limits);
        self.as_of_now()
    }

    /// The states before an ask. Those of a remote store are as they were last read: only asks change them. Holders are
    /// read as far as a decision needs them, which depends on the time.
    fn stored_before(&mut self) -> Stored {
        let is_known = self.states.len() == self.versions.len() && self.kind != "concurrency";
        let is_known = is_known && self.arm.is_remote();
        if is_known { self.as_of_now() } else { self.stored() }
    }

    fn as_of_now(&self) -> Stored {
        let words = |(version, state): (&Version, &State)| {
            let is_live = version.limit.clear_at(state) > Timestamp::from_ticks(self.now);
            let words = || if self.kind == "concurrency" { self.held(&state.words()) } else { state.words() };
            is_live.then(words)
        };
        Stored(self.versions.iter().zip(&self.states).map(words).collect())
    }

    /// The holders among the words of a state whose lease has not ended: its end, the places and the permit of each.
    fn held(&self, words: &[u64]) -> Vec<u64> {
        let holders = words.get(2..).unwrap_or_default().chunks(3);
        holders.filter(|holder| holder[0] > self.now).flatten().copied().collect()
    }

    fn random_ask(&mut self, server: usize) -> Ask {
        let most = self.versions[self.on[server]].promise.most_at_once();
        let units = match self.random.between(0, 99) {
            0..50 => 1,
            50..85 => self.random.sized(1, most),
            85..95 => most,
            _ => most + 1,
        };
        let max_wait = if self.random.percent(80) { 0 } else { self.random.sized(1, 1 << 46) };
        Ask::new(Cost::of(units)).max_wait_in_ticks(crate::ticks(max_wait))
    }

    fn ask(&mut self, server: usize) -> Result<(), String> {
        let ask = self.random_ask(server);
        self.met.asks += 1;
        self.met.lagging += u64::from(self.behind[server]);
        let decision = self.take(server, ask)?;
        match decision.verdict_in_ticks() {
            Verdict::Denied { retry_after } => {
                self.met.denials += 1;
                if self.random.percent(25) {
                    self.wait(server, retry_after, ask)?;
                }
            }
            Verdict::Allowed { .. } | Verdict::Impossible => {}
        }
        if self.looks_again() {
            self.figures_are_exact(server)?;
        }
        self.nothing_is_left_after_a_refill()
    }

    /// I-4: with no other traffic the ask passes after the reported wait, and a tick earlier it does not.
    fn wait(&mut self, server: usize, retry_after: Ticks, ask: Ask) -> Result<(), String> {
        // Longer waits are those of pacers, and would end after time itself.
        if retry_after.get() > u64::MAX / 8 || self.now > u64::MAX / 2 {
            return Ok(());
        }
        self.met.waits += 1;
        let resolution = self.arm.resolution();
        let then = (self.now + retry_after.get()).next_multiple_of(resolution);
        self.set_time(then - resolution);
        if self.arm.peek(server, ask).is_allowed() {
            return Err(format!("I-4: {ask:?} passes a tick before {retry_after:?}"));
        }
        self.set_time(then);
        if !self.take(server, ask)?.is_allowed() {
            return Err(format!("I-4: {ask:?} is denied after {retry_after:?}"));
        }
        Ok(())
    }
}

/// A promise that these servers hold as it is.
fn modest(servers: &impl Versions, kind: &str, random: &mut Random) -> Promise {
    loop {
        let promise = Promise::modest(kind, random);
        if servers.holds(&promise.limit()) {
            return promise;
        }
    }
}
