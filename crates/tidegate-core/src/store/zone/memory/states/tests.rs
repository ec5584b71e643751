//! Tests of a state file whose process ends at any store, and whose blocks are allocated and freed.

use std::collections::BTreeMap;
use std::sync::Mutex as StdMutex;

use super::*;
use crate::ask::{Adjustment, Ask, Cost};
use crate::decision::PermitId;
use crate::limit::Limit;
use crate::receipt::Receipt;
use crate::store::limit_table::LimitTable;
use crate::store::{Map, Subject};
use crate::time::{ManualClock, SECOND, Source};
use crate::{Clock as _, Key};

/// A limit of each algorithm whose states take more than one word.
const LIMITS: [&str; 9] = [
    "5/10s fixed-window align first-hit max-debt 5",
    "6/10s sliding-log",
    "40/10s sliding-log",
    "4/10s sliding-log count-denied",
    "6/10s sliding-window slots 5",
    "6/10s sliding-window mode estimate",
    "3/s pacer",
    "3/s pacer warm-up 4s",
    "6/8s concurrency",
];

const BYTES: usize = 1 << 14;

/// A deterministic random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn file_of(words: Option<&[u64]>, bytes: usize) -> Arc<StateFile> {
    let mapping = Arc::new(Mapping::anonymous(header::BLOCKS_AT + bytes));
    let states = StateFile::over(Path::new("states"), None, mapping, bytes);
    if let Some((rewrite, words)) = words.and_then(|words| words.split_last()) {
        words.iter().enumerate().for_each(|(at, word)| states.region.set(at, *word));
        let rewrite = Rewrite { block: *rewrite as u32, spare: (*rewrite >> 32) as u32 };
        states.region.publish_rewrite(Some(rewrite));
    }
    Arc::new(states)
}

fn map_on(states: &Arc<StateFile>, clock: &Arc<ManualClock>) -> Map {
    let limits = Arc::new(LimitTable::new());
    Map::in_file(Source::Given(clock.clone()), limits, states).expect("a whole file")
}

/// The words of each state, by its name. Permits are compared by their holders and units, as of a time.
type Found = BTreeMap<(u64, Vec<u8>), Vec<u64>>;

fn found_in(states: &StateFile, now: u64) -> Found {
    let (mut found, mut latest): (Found, BTreeMap<_, Block>) = (Found::new(), BTreeMap::new());
    let loaded = states.load(&mut |mut loaded| {
        let name = (loaded.digest, loaded.name.to_vec());
        if latest.get(&name).is_some_and(|other| !states.is_later(loaded.block, *other)) {
            return false;
        }
        latest.insert(name.clone(), loaded.block);
        // A clear state equals no state, and a call may drop it.
        if loaded.clear_at.ticks() <= now {
            found.remove(&name);
            return true;
        }
        let words = match loaded.state.as_holders() {
            Some(holders) => {
                let leases = holders.leases().filter(|(_, [until, _])| *until > now);
                leases.flat_map(|(permit, [until, units])| [until, units, permit.number()]).collect()
            }
            None => loaded.state.words(),
        };
        found.insert(name, words);
        true
    });
    assert_eq!(loaded, Ok(()));
    found
}

/// Returns the words of a file: its blocks, and the rewrite in progress.
fn words_of(region: &Region) -> Vec<u64> {
    let rewrite = region.rewrite().map_or(0, |it| u64::from(it.block) | u64::from(it.spare) << 32);
    (0..region.len()).map(|at| region.get(at)).chain([rewrite]).collect()
}

/// Returns the words of a file before each store of a call, and after the call.
fn watch(states: &StateFile, call: impl FnOnce()) -> Vec<Vec<u64>> {
    let seen = Arc::new(StdMutex::new(vec![words_of(&states.region)]));
    let watched = Arc::clone(&seen);
    states.region.watch.set(Some(Box::new(move |region| {
        watched.lock().expect("no watcher panics").push(words_of(region));
    })));
    call();
    states.region.watch.set(None);
    let mut seen = std::mem::take(&mut *seen.lock().expect("no watcher panics"));
    seen.push(words_of(&states.region));
    seen
}

/// Runs random calls, and calls `after` with the words before each store of a call and those after the call.
fn play(text: &str, seed: u64, calls: usize, mut after: impl FnMut(&[Vec<u64>], u64)) {
    let limit: Limit = text.parse().expect(text);
    let (clock, mut random) = (Arc::new(ManualClock::new()), Random(seed));
    clock.advance(1000 * SECOND);
    let states = file_of(None, BYTES);
    let map = map_on(&states, &clock);
    let keys: Vec<_> = (0..4).map(|number| Key::new(format!("key {number}"))).collect();
    let mut permits: Vec<(usize, PermitId)> = Vec::new();
    let mut receipts: Vec<(usize, Receipt)> = Vec::new();
    for _ in 0..calls {
        let index = random.below(4) as usize;
        let (key, now) = (Subject::new("rule", &keys[index], &limit), clock.now().ticks());
        let cost = Cost::of(1 + random.below(3));
        let seen = watch(&states, || match random.below(12) {
            0 => {
                let _ = map.adjust(key, Adjustment::Charge(cost));
            }
            1 => {
                let _ = map.adjust(key, Adjustment::Refund(cost));
            }
            2 if !receipts.is_empty() => {
                let (index, receipt) = receipts.swap_remove(random.below(receipts.len() as u64) as usize);
                let _ = map.give_back(Subject::new("rule", &keys[index], &limit), receipt);
            }
            3 | 4 if !permits.is_empty() => {
                let (index, permit) = permits.swap_remove(random.below(permits.len() as u64) as usize);
                map.release(Subject::new("rule", &keys[index], &limit), permit);
            }
            5 if !permits.is_empty() => {
                let (index, permit) = permits[random.below(permits.len() as u64) as usize];
                map.renew(Subject::new("rule", &keys[index], &limit), permit);
            }
            6 if random.below(4) == 0 => {
                map.reset_limit(key);
            }
            7 => {
                let other = Subject::new("rule", &keys[(index + 1) % 4], &limit);
                let _ = map.take_all(&[(key, Ask::new(cost)), (other, Ask::ONE)]);
            }
            _ => {
                let (decision, receipt) = map.take(key, Ask::new(cost).max_wait(SECOND));
                permits.extend(decision.permit().map(|permit| (index, permit)));
                receipts.extend(receipt.map(|receipt| (index, receipt)));
            }
        });
        after(&seen, now);
        clock.advance(SECOND * random.below(5) as u32 / 4);
    }
}

/// A process that is killed between any two stores leaves each state before or after the change.
#[test]
#[cfg_attr(miri, ignore = "it takes long")]
fn a_kill_before_any_store_leaves_the_old_state_or_the_new_one() {
    let (mut stores, mut loads) = (0, 0);
    for (text, seed) in LIMITS.into_iter().zip(1..) {
        play(text, seed, 300, |seen, now| {
            let at = |words: &[u64]| found_in(&file_of(Some(words), BYTES), now);
            let (before, after) = (at(&seen[0]), at(&seen[seen.len() - 1]));
            for words in &seen[1..seen.len() - 1] {
                let killed = at(words);
                for name in before.keys().chain(after.keys()).chain(killed.keys()) {
                    let state = killed.get(name);
                    let is_whole = state == before.get(name) || state == after.get(name);
                    assert!(is_whole, "{text}: {before:?}\n -> {after:?}\n left {killed:?}");
                }
                loads += 1;
            }
            stores += seen.len() - 2;
        });
    }
    assert!(stores > 5_000 && stores == loads, "{stores} stores");
    println!("{stores} stores of {} limits: each leaves the old state or the new one", LIMITS.len());
}

/// A rewrite that was interrupted by a kill is completed by the next start, so that a full file has a spare block for
/// the next one.
#[test]
#[cfg_attr(miri, ignore = "it takes long")]
fn a_kill_during_a_rewrite_leaves_a_full_file_its_spare_block() {
    let logs = [[5, 100, 6, 200, 7], [9, 110, 10, 200, 11], [12, 100, 13, 201, 14]];
    let log =
        |version: usize| State::from_words(Algorithm::SlidingLog, &logs[version]).expect("words of a log");
    let clear_at = |version: usize| Timestamp::from_ticks(1000 + logs[version][3]);
    let states = file_of(None, 1 << 10);
    assert_eq!(states.load(&mut |_| true), Ok(()));
    let names = [b"ana", b"bob", b"eve", b"ian", b"kim", b"lea", b"max", b"ned"];
    let insert = |name: &&[u8; 3]| {
        let name = BlockName { digest: 1, name: *name, algorithm: Algorithm::SlidingLog };
        states.insert(name, &mut log(0), clear_at(0), logs[0].len()).is_some()
    };
    assert_eq!(names.iter().filter(|name| insert(name)).count(), 7, "and one spare block");
    assert_eq!(states.used_bytes(), states.bytes());
    // Two rewrites in a row, killed before each store of either.
    let versions_after = |words: &[u64], version: usize| {
        let states = file_of(Some(words), 1 << 10);
        let (mut first, mut found) = (None, Vec::new());
        let loaded = states.load(&mut |loaded| {
            found.push((loaded.name.to_vec(), loaded.state.words()));
            first = first.or((loaded.name == b"ana").then_some(loaded.block));
            true
        });
        assert_eq!(loaded, Ok(()));
        found.sort();
        found.dedup_by(|one, other| one.0 == other.0);
        assert_eq!(found.len(), 7);
        assert!(states.blocks.lock().spare().is_some(), "there is a spare block again");
        let was = logs.iter().position(|log| log[..] == found[0].1).expect("old or new");
        assert!(found[1..].iter().all(|(_, words)| words[..] == logs[0]));
        let block = first.expect("the state is there");
        (was, watch(&states, || states.save(block, &mut log(version), clear_at(version))))
    };
    let (was, seen) = versions_after(&words_of(&states.region), 1);
    assert!(was == 0 && seen.len() > 10, "{} stores", seen.len());
    for words in seen {
        let (was, seen) = versions_after(&words, 2);
        assert!(was < 2, "{was}");
        for words in seen {
            let (left, _) = versions_after(&words, 0);
            assert!(left == was || left == 2, "{was} -> {left}");
        }
    }
}

/// The file equals the memory after every call.
#[test]
#[cfg_attr(miri, ignore = "it takes long")]
fn a_map_that_is_opened_again_has_every_state() {
    for (text, seed) in LIMITS.into_iter().zip(100..) {
        let limit: Limit = text.parse().expect(text);
        let clock = Arc::new(ManualClock::new());
        clock.advance(1000 * SECOND);
        let states = file_of(None, BYTES);
        let mut random = Random(seed);
        let mut map = map_on(&states, &clock);
        let keys: Vec<_> = (0..10).map(|number| Key::new(format!("key {number}"))).collect();
        for call in 0..500 {
            let key = Subject::new("rule", &keys[random.below(10) as usize], &limit);
            let _ = map.take(key, Ask::new(Cost::of(1 + random.below(3))).max_wait(SECOND));
            clock.advance(SECOND * random.below(3) as u32 / 4);
            if call % 10 != 0 {
                continue;
            }
            let held: Vec<_> = keys.iter().map(|key| map.state(Subject::new("rule", key, &limit))).collect();
            map = map_on(&file_of(Some(&words_of(&states.region)), BYTES), &clock);
            for (key, held) in keys.iter().zip(held) {
                let subject = Subject::new("rule", key, &limit);
                if clock.now() < limit.terms().clear_at(&held) {
                    assert_eq!(map.state(subject).words(), held.words(), "{text}");
                }
                let (one, other) =
                    (limit.terms().peek(&held, clock.now(), Ask::ONE), map.peek(subject, Ask::ONE));
                assert_eq!(one, other, "{text}");
            }
            map = map_on(&states_again(&states), &clock);
        }
    }
}

/// Opens the same file again.
fn states_again(states: &StateFile) -> Arc<StateFile> {
    let bytes = states.bytes();
    Arc::new(StateFile::over(Path::new("states"), None, Arc::clone(&states.mapping), bytes))
}

/// The period of a log is written with its entries, also for a log that was written while it was empty.
#[test]
fn a_log_that_was_rewritten_while_it_was_empty_is_clear_when_its_limit_says() {
    let states = file_of(None, BYTES);
    let _ = states.load(&mut |_| true);
    let log = |words: &[u64]| State::from_words(Algorithm::SlidingLog, words).expect("the words of a log");
    let name = BlockName { digest: 1, name: b"ana", algorithm: Algorithm::SlidingLog };
    let at = Timestamp::from_ticks;
    let block = states.insert(name, &mut log(&[5, 100, 6]), at(1100), 9).expect("there is room");
    states.save(block, &mut log(&[7]), Timestamp::EPOCH);
    states.save(block, &mut log(&[7, 200, 8]), at(1200));
    let mut found = Vec::new();
    states_again(&states)
        .load(&mut |loaded| {
            found.push((loaded.state.words(), loaded.clear_at));
            true
        })
        .unwrap();
    assert_eq!(found, [(vec![7, 200, 8], at(1200))]);
}

/// A process that is killed while a state moves leaves both blocks.
#[test]
fn of_two_blocks_of_a_name_the_later_one_counts() {
    let (limit, clock): (Limit, _) = ("5/h sliding-log".parse().unwrap(), Arc::new(ManualClock::new()));
    clock.advance(1000 * SECOND);
    let key = Key::new("ana");
    for later in [0, 1] {
        let states = file_of(None, BYTES);
        let map = map_on(&states, &clock);
        let take = || {
            clock.advance(SECOND);
            assert!(map.take(Subject::new("rule", &key, &limit), Ask::ONE).0.is_allowed());
            map.state(Subject::new("rule", &key, &limit))
        };
        let (mut old, mut new) = (take(), take());
        let mut found = None;
        states_again(&states)
            .load(&mut |loaded| found.insert((loaded.digest, loaded.name.to_vec())).0 > 0)
            .unwrap();
        let (digest, name) = found.expect("one state");
        let name = BlockName { digest, name: &name, algorithm: limit.algorithm() };
        let states = file_of(None, BYTES);
        let blocks = {
            let _ = states.load(&mut |_| true);
            [(); 2].map(|()| states.allocate(name, 9).expect("there is room"))
        };
        let clear_at = limit.terms().clear_at(&new);
        states.write_all(blocks[later], &mut new, clear_at, 2);
        states.write_all(blocks[1 - later], &mut old, clear_at, 1);
        let map = map_on(&states_again(&states), &clock);
        assert_eq!(map.peek(Subject::new("rule", &key, &limit), Ask::ONE).remaining(), 3, "{later}");
        assert_eq!(map.keys(), 1);
    }
}

#[test]
fn blocks_come_back_and_merge() {
    let (limit, clock): (Limit, _) = ("20/10s sliding-log".parse().unwrap(), Arc::new(ManualClock::new()));
    clock.advance(1000 * SECOND);
    let states = file_of(None, BYTES);
    let map = map_on(&states, &clock);
    let free = |states: &StateFile| states.bytes() - states.used_bytes();
    for round in 0..3 {
        for number in 0..10 {
            let key = Key::new(format!("{round} {number}"));
            for _ in 0..20 {
                clock.advance(SECOND / 100);
                assert!(map.take(Subject::new("rule", &key, &limit), Ask::ONE).0.is_allowed());
            }
        }
        assert!(states.used_bytes() >= 10 * 512, "{}", states.used_bytes());
        for number in 0..10 {
            let key = Key::new(format!("{round} {number}"));
            assert!(map.reset_limit(Subject::new("rule", &key, &limit)));
        }
        assert_eq!((free(&states), map.keys()), (BYTES, 0), "also the spare block");
    }
    let again = states_again(&states);
    assert_eq!(found_in(&again, 0), Found::new());
    assert_eq!(again.used_bytes(), 0);
}

#[test]
fn a_file_that_is_full_denies_newcomers_and_keeps_what_it_has() {
    let (limit, clock): (Limit, _) = ("3/h sliding-window".parse().unwrap(), Arc::new(ManualClock::new()));
    clock.advance(1000 * SECOND);
    let states = file_of(None, 1 << 12);
    let map = map_on(&states, &clock);
    let take = |map: &Map, number: usize| {
        let key = Key::new(number.to_string());
        map.take(Subject::new("rule", &key, &limit), Ask::ONE).0
    };
    let held = (0..100).filter(|number| take(&map, *number).is_allowed()).count();
    assert_eq!(held, (1 << 12) / limit.file_bytes_per_key(8).unwrap());
    assert!(take(&map, 99).is_store_full() && states.used_bytes() == states.bytes());
    for number in 0..held {
        assert_eq!(take(&map, number).remaining(), 1);
    }
    let map = map_on(&states_again(&states), &clock);
    assert_eq!(map.keys(), held);
    assert_eq!(take(&map, 0).remaining(), 0);
    clock.advance(SECOND * 7200);
    // A new key searches some shards for room, and the next shards in the next attempt.
    assert!((0..64).any(|_| take(&map, 99).is_allowed()), "a clear state makes room");
}

#[test]
fn a_log_that_finds_no_larger_block_is_denied_and_loses_nothing() {
    let (limit, clock): (Limit, _) = ("1000/h sliding-log".parse().unwrap(), Arc::new(ManualClock::new()));
    clock.advance(1000 * SECOND);
    let states = file_of(None, 1 << 12);
    let map = map_on(&states, &clock);
    let key = Key::new("ana");
    let take = |map: &Map| {
        clock.advance(SECOND / 1000);
        map.take(Subject::new("rule", &key, &limit), Ask::ONE).0
    };
    let held = (0..1000).filter(|_| take(&map).is_allowed()).count();
    assert!((50..130).contains(&held), "{held}");
    assert!(take(&map).is_store_full());
    let map = map_on(&states_again(&states), &clock);
    let left = map.peek(Subject::new("rule", &key, &limit), Ask::ONE).remaining();
    assert_eq!(left as usize, 1000 - held);
}

#[test]
fn names_of_every_length_find_their_states() {
    let (limit, clock): (Limit, _) = ("1/h pacer burst 0s".parse().unwrap(), Arc::new(ManualClock::new()));
    clock.advance(1000 * SECOND);
    let states = file_of(None, 1 << 16);
    let map = map_on(&states, &clock);
    let key = |length: usize| Key::new("k".repeat(length));
    let lengths = [0, 1, 7, 8, 9, 30, 31, 100, 4000];
    for length in lengths {
        assert!(map.take(Subject::new("rule", &key(length), &limit), Ask::ONE).0.is_allowed());
    }
    let map = map_on(&states_again(&states), &clock);
    for length in lengths {
        assert!(!map.take(Subject::new("rule", &key(length), &limit), Ask::ONE).0.is_allowed(), "{length}");
    }
    assert!(map.take(Subject::new("rule", &key(1 << 20), &limit), Ask::ONE).0.is_store_full());
}

#[test]
fn a_file_that_was_emptied_is_like_a_new_one() {
    let states = file_of(None, 3 << 12);
    for at in 0..states.region.len() {
        states.region.set(at, 0x0101_0101_0101_0101);
    }
    assert!(matches!(states.load(&mut |_| true), Err(Flaw::Blocks { at: 0 })));
    states.empty();
    assert_eq!(found_in(&states_again(&states), 0), Found::new());
    assert_eq!(states.used_bytes(), 0);
}

/// Whatever the words are, nothing panics, and a file that is found valid can be written to.
#[test]
fn words_that_were_changed_at_random_are_a_flaw_or_a_state() {
    let mut images = Vec::new();
    for (text, seed) in LIMITS.into_iter().zip(7..) {
        play(text, seed, if cfg!(miri) { 3 } else { 40 }, |seen, _| images = vec![seen[0].clone()]);
        let image = images.pop().expect("one was played");
        let (mut random, mut flaws) = (Random(seed), 0);
        for _ in 0..if cfg!(miri) { 3 } else { 300 } {
            let mut words = image.clone();
            for _ in 0..1 + random.below(3) {
                let at = (random.below(words.len() as u64 / 8) * random.below(9).min(1) * 8
                    + random.below(16)) as usize;
                let at = at.min(words.len() - 1);
                words[at] ^= 1 << random.below(64);
            }
            if random.below(4) == 0 {
                let [block, spare] = [(); 2].map(|()| random.below(BYTES as u64 / 64 + 1));
                *words.last_mut().expect("a file has words") = block | spare << 32;
            }
            let states = file_of(Some(&words), BYTES);
            flaws += usize::from(states.load(&mut |loaded| loaded.clear_at.ticks() % 2 == 0).is_err());
        }
        assert!(flaws > 0 || cfg!(miri), "{text}");
    }
}
