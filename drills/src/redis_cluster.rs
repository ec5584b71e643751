//! Primaries die in a cluster while four machines ask, and slots move.
//!
//! Six nodes that notice a death after two seconds. In most rounds a primary is killed until decisions come again to
//! every store about every key, and comes back as a replica; in the others a hundred slots move to another primary.
//! Stores also ask about two subjects at once, who live in different slots: one of a crowd, and one that all share and
//! that is another one each round. Whatever the shared one has spent is what passed, or more if a caller does not know
//! whether it did; it is never less, unless its own primary was killed.

mod judge;
mod moving;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use conformance::random::Random;
use harness::{Options, Report, pause, thousands};
use testbed::{Cluster, Flavour, Redis};
use tidegate_redis::{RedisStore, Status};

use crate::Outcome;
use crate::fleet::{Fleet, PULSE, Rounds, UNLIMITED, stores};
use crate::someone::{Someone, open, reason, wait};
use judge::{Outage, Round, Shared};

const ROUNDS: u64 = 30;
const STORES: usize = 4;
/// How often each store asks.
const EVERY: Duration = Duration::from_millis(4);
/// Every so many rounds slots move, and no node is killed.
const MOVING: u64 = 3;
/// The milliseconds between one round and the next.
const QUIET: (u64, u64) = (500, 2000);
const NEVER: Duration = Duration::from_secs(60);
/// Enough that every primary has some.
const PULSES: u64 = 8;
const BUCKETS: u64 = 12;
const PEOPLE: u64 = 60;
/// Nothing of it is regained within half a minute.
const SHARED_LIMIT: &str = "1000000/365d";
/// For looks that have to be answered.
const PATIENT: Duration = Duration::from_secs(5);

struct Drill {
    cluster: Cluster,
    fleet: Fleet,
    round: Arc<AtomicU64>,
    direct: RedisStore,
    random: Random,
    moved: u64,
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let mut drill = Drill::start(options.seed)?;
    let mut shared = Shared::default();
    let rounds = (options.counted(ROUNDS), drill.fleet.watch());
    let rounds = Rounds::go(rounds, report, |number| {
        let round = drill.go(number, &mut shared)?;
        let (count, took) = (drill.fleet.decided(), round.outage.map(|outage| outage.lasted()));
        Ok((round, format!("{} decisions, outage {took:?}", thousands(count))))
    });
    drill.say(report);
    rounds.end(drill.fleet, report, |done, heard, report| {
        judge::say(done, heard, report);
        judge::judge(done, heard, report);
        shared.say(report);
    })
}

/// What the stores ask, in turn.
fn question(number: u64, round: u64) -> Vec<Someone> {
    let turn = number / 4;
    match number % 4 {
        0 => vec![Someone::new(format!("{PULSE} {}", turn % PULSES), UNLIMITED)],
        1 => vec![Someone::new(format!("bucket {}", turn % BUCKETS), "20/s burst 50")],
        _ => vec![shared(round), Someone::new(format!("person {}", number % PEOPLE), "5/s burst 10")],
    }
}

/// Whom all share in a round.
fn shared(round: u64) -> Someone {
    Someone::new(format!("shared {round}"), SHARED_LIMIT)
}

impl Drill {
    fn start(seed: u64) -> Result<Drill, String> {
        let cluster = Cluster::start(Flavour::Redis7);
        let addresses: Vec<_> = cluster.addresses().iter().map(ToString::to_string).collect();
        let url = format!("redis+cluster://{}", addresses.join(","));
        let direct = open(&url, PATIENT, true)?;
        let round = Arc::new(AtomicU64::new(0));
        let asked = Arc::clone(&round);
        let fleet = Fleet::start(stores(&url, STORES)?, EVERY, move |number| {
            question(number, asked.load(Ordering::Relaxed))
        });
        fleet.wait_for_pulses(PULSES as usize, NEVER)?;
        Ok(Drill { cluster, fleet, round, direct, random: Random::new(seed), moved: 0 })
    }

    fn say(&self, report: &Report) {
        let statuses = self.fleet.statuses();
        let sum = |count: fn(&Status) -> u64| thousands(statuses.iter().map(count).sum());
        report.fact(format!(
            "{} slots moved; {} questions redirected, {} takes given back",
            thousands(self.moved),
            sum(|status| status.redirected),
            sum(|status| status.given_back),
        ));
    }

    fn go(&mut self, number: u64, judged: &mut Shared) -> Result<Round, String> {
        self.round.store(number, Ordering::Relaxed);
        let (began, epoch) = (self.fleet.now(), self.epoch());
        let primaries = self.addresses_of_primaries();
        pause(Duration::from_millis(self.random.between(QUIET.0, QUIET.1)));
        let holder = self.holder_of(&shared(number))?;
        let (outage, dead) = if number.is_multiple_of(MOVING) {
            self.moved += moving::move_some(&self.cluster, &mut self.random)?;
            (None, None)
        } else {
            let dead = self.random.pick(&self.primaries_with_a_pulse());
            (Some(self.kill(dead)?), Some(dead))
        };
        // The shared subject of this round is left alone from now on.
        self.round.store(0, Ordering::Relaxed);
        let is_whole = dead.is_none() && self.addresses_of_primaries() == primaries;
        if is_whole || dead.is_some_and(|dead| dead != holder && self.is_one_failover(epoch)) {
            pause(Duration::from_millis(100));
            self.compare(&shared(number), judged)?;
        }
        if let Some(dead) = dead {
            self.cluster.bring_back(dead);
            self.cluster.wait_until_whole();
        }
        let elections = self.epoch() - epoch;
        let failovers = if is_whole { 0 } else { elections.max(1) };
        Ok(Round { outage, began, ended: self.fleet.now(), failovers })
    }

    /// Kills a primary, and waits until decisions come again.
    fn kill(&self, primary: SocketAddr) -> Result<Outage, String> {
        let node = self.cluster.node(primary);
        let slot = self.cluster.slots_of(node).first().copied().ok_or("a primary has no slots")?;
        node.kill();
        let gone = self.fleet.feel();
        let (resumed, replaced) = thread::scope(|scope| {
            let replacing = scope.spawn(|| {
                self.cluster.wait_for_failover(slot, primary);
                self.fleet.now()
            });
            (self.fleet.wait_for_pulses(PULSES as usize, NEVER), replacing.join())
        });
        let replaced = replaced.map_err(|_| "there was no failover".to_owned())?;
        Ok(Outage { gone, replaced, resumed: resumed? })
    }

    /// Compares the replies about a key with what it has spent.
    fn compare(&self, someone: &Someone, judged: &mut Shared) -> Outcome {
        let spent = wait(someone.spent(&self.direct)).map_err(|error| reason(&error))?;
        let log = self.fleet.log_of(&someone.name);
        judged.compare(&someone.name, log, spent);
        Ok(())
    }

    fn addresses_of_primaries(&self) -> Vec<SocketAddr> {
        self.cluster.primaries().into_iter().map(Redis::address).collect()
    }

    /// Those whose death is felt.
    fn primaries_with_a_pulse(&self) -> Vec<SocketAddr> {
        let has_pulse = |node: &&Redis| !node.command(&["KEYS", &format!("*{PULSE}*")]).is_empty();
        self.cluster.primaries().into_iter().filter(has_pulse).map(Redis::address).collect()
    }

    /// The primary that holds the state of a key.
    fn holder_of(&self, someone: &Someone) -> Result<SocketAddr, String> {
        let pattern = format!("*{}", someone.name);
        let has = |node: &&Redis| !node.command(&["KEYS", &pattern]).is_empty();
        let found = self.cluster.primaries().into_iter().find(has).map(Redis::address);
        found.ok_or_else(|| format!("no primary has a state of {:?}", someone.name))
    }

    /// How many elections there were, and other changes that nodes have to agree on.
    fn epoch(&self) -> u64 {
        let epoch = |node: &Redis| {
            let info = node.try_command(&["CLUSTER", "INFO"]).ok()?.text();
            info.lines().find_map(|line| line.strip_prefix("cluster_current_epoch:"))?.trim().parse().ok()
        };
        self.cluster.nodes().iter().filter_map(epoch).max().unwrap_or_default()
    }

    fn is_one_failover(&self, epoch: u64) -> bool {
        self.epoch() == epoch + 1
    }
}
