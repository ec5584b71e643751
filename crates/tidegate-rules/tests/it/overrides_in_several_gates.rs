//! Tests that counts under an override or a limit of a single value are carried over by a gate that has decided nothing
//! under it: another gate on the same store, or the same one after a restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, process};

use tidegate::{FallbackStore, Map, SECOND, Zone};
use tidegate_rules::{Gate, GateStore, Instead, ManualCalendar, OverrideSet};

use crate::changed_numbers::{COUNTING, ana, limit_of, passed, rule};
use crate::faulty::Faulty;
use crate::limit_for::valued;
use crate::requests::{policy, remaining, still_zone};

/// The end of an override that ends by itself.
const END: i64 = 100;

/// Two gates on one store.
struct Two {
    calendar: Arc<ManualCalendar>,
    gates: [Gate; 2],
    advance: Box<dyn Fn()>,
}

impl Two {
    /// Puts an override in force on both gates, as servers that share their overrides do.
    fn put(&self, instead: Instead) {
        for gate in &self.gates {
            gate.put_override("a", &ana(), instead, END).expect("it is supported");
        }
    }

    fn put_limit(&self, limit: &str) {
        self.put(Instead::Limit(limit.parse().expect("a limit")));
    }

    fn end(&self, is_removed: bool) {
        self.calendar.set(if is_removed { END - 1 } else { END });
        for gate in &self.gates {
            assert_eq!(gate.remove_override("a", &ana()), Ok(is_removed));
        }
    }

    fn reload(&self, text: &str) {
        for gate in &self.gates {
            gate.replace(policy(text)).expect("the store holds every limit");
        }
    }
}

fn left(gate: &Gate) -> u64 {
    remaining(gate, "a", &ana())
}

/// Calls the test with two gates for each algorithm and store.
fn each_two(text: impl Fn(&str) -> String, test: impl Fn(&str, &str, &Two)) {
    for algorithm in COUNTING {
        let (zone, zone_clock) = still_zone();
        let map_clock = Arc::new(tidegate::ManualClock::new());
        let map = Map::with_clock(map_clock.clone());
        let shared_clock = Arc::new(tidegate::ManualClock::new());
        let shared = Faulty::new(shared_clock.clone());
        let fallback = || FallbackStore::new(shared.clone(), &Zone::new(1 << 16));
        let stores: [(&str, _, [GateStore; 2]); 3] = [
            ("zone", zone_clock, [(&zone).into(), (&zone).into()]),
            ("map", map_clock, [(&map).into(), (&map).into()]),
            ("shared store", shared_clock, [fallback().into(), fallback().into()]),
        ];
        for (name, clock, stores) in stores {
            // The middle of every window.
            clock.advance(43_200 * SECOND);
            let calendar = Arc::new(ManualCalendar::at(0));
            let gates = stores.map(|store| {
                let gate = Gate::builder(policy(&text(algorithm)), store).calendar(calendar.clone());
                gate.build().expect("the store supports the policy")
            });
            let advance = Box::new(move || clock.advance(SECOND));
            test(algorithm, &format!("{algorithm} on a {name}"), &Two { calendar, gates, advance });
        }
    }
}

fn plain(algorithm: &str) -> String {
    rule(&limit_of(5, "d", algorithm))
}

#[test]
fn the_end_of_an_override_carries_what_another_gate_counted_under_it() {
    for is_removed in [true, false] {
        each_two(plain, |algorithm, what, two| {
            let [a, b] = &two.gates;
            two.put_limit(&limit_of(100, "d", algorithm));
            assert_eq!(passed(a, 50), 50, "{what}");
            (two.advance)();
            two.end(is_removed);
            assert_eq!((passed(b, 9), left(b)), (0, 0), "{what}: {is_removed}");
            assert_eq!(passed(a, 9), 0, "{what}: {is_removed}");
        });
    }
}

#[test]
fn an_override_in_place_of_another_carries_what_another_gate_counted_under_that() {
    each_two(plain, |algorithm, what, two| {
        let [a, b] = &two.gates;
        two.put_limit(&limit_of(100, "d", algorithm));
        assert_eq!(passed(a, 50), 50, "{what}");
        (two.advance)();
        two.put_limit(&limit_of(60, "d", algorithm));
        assert_eq!((left(b), left(a)), (10, 10), "{what}");
        // A gate that has decided nothing under several overrides knows them all.
        two.put_limit(&limit_of(80, "d", algorithm));
        two.put(Instead::Deny);
        two.put_limit(&limit_of(90, "d", algorithm));
        two.put_limit(&limit_of(70, "d", algorithm));
        assert_eq!(left(b), 20, "{what}");
        assert_eq!(passed(b, 7), 7, "{what}");
        (two.advance)();
        two.end(true);
        assert_eq!((passed(b, 9), passed(a, 9)), (0, 0), "{what}");
    });
}

#[test]
fn a_ban_in_place_of_an_override_does_not_forget_what_another_gate_counted() {
    each_two(plain, |algorithm, what, two| {
        let [a, b] = &two.gates;
        two.put_limit(&limit_of(100, "d", algorithm));
        assert_eq!(passed(a, 3), 3, "{what}");
        (two.advance)();
        two.put(Instead::Deny);
        assert_eq!((passed(a, 1), passed(b, 1)), (0, 0), "{what}");
        two.end(true);
        assert_eq!((left(b), passed(b, 9)), (2, 2), "{what}");
    });
}

#[test]
fn an_override_that_comes_back_carries_what_another_gate_counted_under_the_one_between() {
    each_two(plain, |algorithm, what, two| {
        let [a, b] = &two.gates;
        let hundred = limit_of(100, "d", algorithm);
        two.put_limit(&hundred);
        assert_eq!(passed(b, 1), 1, "{what}");
        two.end(true);
        assert_eq!(passed(b, 1), 1, "{what}");
        two.put_limit(&limit_of(60, "d", algorithm));
        (two.advance)();
        assert_eq!(passed(a, 20), 20, "{what}");
        (two.advance)();
        two.put_limit(&limit_of(80, "d", algorithm));
        assert!(left(b) <= 60, "{what}: {} of 80 are left after 20 and 2", left(b));
    });
}

#[test]
fn a_value_that_goes_or_changes_carries_what_another_gate_counted_under_it() {
    let own = |algorithm: &str, amount| format!("ana = '{}'", limit_of(amount, "d", algorithm));
    let text = |algorithm: &str| valued(&limit_of(5, "d", algorithm), &own(algorithm, 100));
    each_two(text, |algorithm, what, two| {
        let [a, b] = &two.gates;
        assert_eq!(passed(a, 50), 50, "{what}");
        (two.advance)();
        two.reload(&valued(&limit_of(5, "d", algorithm), &own(algorithm, 60)));
        assert_eq!(left(b), 10, "{what}: it has changed");
        (two.advance)();
        two.reload(&plain(algorithm));
        assert_eq!((passed(b, 9), passed(a, 9)), (0, 0), "{what}: it is gone");
    });
    each_two(text, |algorithm, what, two| {
        let [a, b] = &two.gates;
        assert_eq!(passed(a, 50), 50, "{what}");
        (two.advance)();
        two.reload(&plain(algorithm));
        assert_eq!((passed(b, 9), passed(a, 9)), (0, 0), "{what}: it is gone at once");
    });
}

#[test]
fn a_key_that_used_nothing_under_an_override_is_full_at_its_end() {
    each_two(plain, |algorithm, what, two| {
        two.put_limit(&limit_of(100, "d", algorithm));
        two.end(true);
        assert_eq!(passed(&two.gates[1], 9), 5, "{what}");
    });
}

fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", process::id()));
    // The folder does not exist the first time.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder.join("zone.tg")
}

/// Returns a gate on the file, with the overrides that a server keeps beside it.
fn reopened(file: &Path, text: &str, kept: &OverrideSet) -> (Gate, Arc<ManualCalendar>) {
    let calendar = Arc::new(ManualCalendar::at(0));
    let zone = Zone::in_file(file, 1 << 18).expect("the file of a zone");
    let gate = Gate::builder(policy(text), &zone).calendar(calendar.clone()).build().expect("it fits");
    gate.replace_overrides(kept.clone());
    (gate, calendar)
}

#[test]
fn counts_under_an_override_survive_a_restart_and_its_end_after_that() {
    for algorithm in COUNTING {
        let text = rule(&limit_of(5, "1000d", algorithm));
        let limit = |amount| Instead::Limit(limit_of(amount, "1000d", algorithm).parse().expect("a limit"));
        for (way, left) in [("removed", 0), ("ended", 0), ("replaced", 10)] {
            let what = format!("{algorithm}, {way}");
            let file = file(&format!("override-{algorithm}-{way}"));
            let (gate, _) = reopened(&file, &text, &OverrideSet::default());
            gate.put_override("a", &ana(), limit(100), END).expect("it is supported");
            assert_eq!(passed(&gate, 50), 50, "{what}");
            let kept = gate.override_set();
            drop(gate);
            let (gate, calendar) = reopened(&file, &text, &kept);
            match way {
                "removed" => assert_eq!(gate.remove_override("a", &ana()), Ok(true)),
                "ended" => calendar.set(END),
                _ => drop(gate.put_override("a", &ana(), limit(60), END).expect("it is supported")),
            }
            assert_eq!(passed(&gate, 99), left, "{what}");
        }
    }
}
