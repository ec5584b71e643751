use std::net::Ipv4Addr;
use std::thread;

use tidegate_core::Key;

use super::*;

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const KEYS: usize = 200_000;
const NOTES: usize = 1_000_000;

/// Creates counts that record every decision at any load.
fn exact() -> Top {
    Top::with_pace(Pace::new([1, 1]))
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::after_epoch(Duration::from_secs(seconds))
}

fn refuse(top: &Top, now: Timestamp, key: &Key, times: u64) {
    for _ in 0..times {
        top.note(|| now, "api", key.as_bytes(), TopOutcome::Denied);
    }
}

fn names(found: &[HotKey]) -> Vec<String> {
    found.iter().map(|heavy| heavy.key.join("/")).collect()
}

fn tracked(top: &Top) -> usize {
    top.shelves.iter().map(|shelf| shelf.lock().unwrap().places().count()).sum()
}

/// Returns numbers of keys by Zipf's law: the first occurs twice as often as the second, three times as often as the
/// third.
fn zipf() -> impl Iterator<Item = usize> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=KEYS).map(|rank| (sum += 1.0 / rank as f64, sum).1).collect();
    let mut number = SEED;
    (0..NOTES).map(move |_| {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        let drawn = (number >> 11) as f64 / (1_u64 << 53) as f64 * sum;
        sums.partition_point(|sum| *sum < drawn)
    })
}

/// Denies Zipf-distributed keys, each followed by a key that occurs once. Returns the number of denials of each Zipf
/// key.
fn refuse_zipf_in_a_flood(top: &Top) -> Vec<u64> {
    let keys: Vec<Key> = (0..KEYS).map(|number| Key::new(("key", number))).collect();
    let mut truth = vec![0; KEYS];
    for (turn, number) in zipf().enumerate() {
        refuse(top, at(1), &keys[number], 1);
        refuse(top, at(1), &Key::new(("flood", turn)), 1);
        truth[number] += 1;
    }
    truth
}

fn the_first(truth: &[u64], at_most: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..truth.len()).collect();
    numbers.sort_by_key(|number| Reverse(truth[*number]));
    numbers.truncate(at_most);
    numbers
}

#[test]
fn the_ten_that_are_refused_most_are_found_in_a_flood_within_the_error() {
    let top = exact();
    let truth = refuse_zipf_in_a_flood(&top);

    let found = top.most(TopOutcome::Denied, Some("api"), 10);
    let first: Vec<String> = the_first(&truth, 10).iter().map(|number| format!("key/{number}")).collect();
    assert_eq!(names(&found), first);
    for heavy in top.most(TopOutcome::Denied, None, MAX_KEYS) {
        let truth = if heavy.key[0] == "key" { truth[heavy.key[1].parse::<usize>().unwrap()] } else { 1 };
        assert!((heavy.denied - heavy.error..=heavy.denied).contains(&truth), "{truth}: {heavy:?}");
    }
    let most_error = found.iter().map(|heavy| heavy.error).max();
    assert!(most_error <= Some((2 * NOTES / MAX_KEYS) as u64), "{most_error:?}");
}

#[test]
fn sampling_finds_them_too_and_errs_by_what_it_says() {
    pace::seed(SEED);
    let top = Top::new();
    let truth = refuse_zipf_in_a_flood(&top);

    let found = top.most(TopOutcome::Denied, Some("api"), 12);
    for number in the_first(&truth, 8) {
        let name = ["key".to_owned(), number.to_string()];
        let heavy = found.iter().find(|heavy| heavy.key == name).expect("one of the first eight");
        assert!(heavy.denied.abs_diff(truth[number]) <= heavy.error, "{}: {heavy:?}", truth[number]);
        assert!(heavy.error < heavy.denied / 5, "{heavy:?}");
    }
}

#[test]
fn a_latecomer_to_a_flood_is_found_with_the_error_of_its_place() {
    let top = exact();
    (0..NOTES).for_each(|turn| refuse(&top, at(1), &Key::new(turn), 1));
    refuse(&top, at(1), &Key::new("late"), 5000);

    let found = top.most(TopOutcome::Denied, None, 10);
    assert_eq!(names(&found), ["late"], "the rest is nothing but error");
    assert!((500..2000).contains(&found[0].error), "{found:?}");
    assert_eq!(found[0].denied - found[0].error, 5000);
}

#[test]
fn a_flood_of_allowed_keys_does_not_hide_who_is_refused() {
    let top = exact();
    refuse(&top, at(1), &Key::new("ana"), 3);
    for turn in 0..100_000 {
        top.note(|| at(1), "api", Key::new(turn).as_bytes(), TopOutcome::Allowed);
    }
    top.note(|| at(1), "api", Key::new("ana").as_bytes(), TopOutcome::Allowed);
    let [ana] = &top.most(TopOutcome::Denied, None, 10)[..] else { panic!("one was denied") };
    assert_eq!((ana.denied, ana.asked, ana.error), (3, 4, 0));
}

#[test]
fn what_is_tracked_is_bounded() {
    let top = exact();
    for window in 0..3 {
        for turn in 0..20_000 {
            let key = Key::new((turn, "x".repeat(300)));
            top.note(|| at(60 * window), "api", key.as_bytes(), TopOutcome::Allowed);
            top.note(|| at(60 * window), "api", key.as_bytes(), TopOutcome::Denied);
        }
        assert_eq!(tracked(&top), 2 * MAX_KEYS * if window == 0 { 1 } else { 2 });
    }
    for shelf in &top.shelves {
        assert!(shelf.lock().unwrap().places().all(|(_, place)| place.key.len() == MAX_SHOWN_BYTES));
    }
}

#[test]
fn few_are_counted_exactly_and_sorted_by_number_then_by_name() {
    let top = Top::new();
    let note = |rule, key: &str, outcome, times| {
        (0..times).for_each(|_| top.note(|| at(1), rule, Key::new(key).as_bytes(), outcome));
    };
    note("login", "bob", TopOutcome::Denied, 2);
    note("api", "eve", TopOutcome::Denied, 2);
    note("api", "ana", TopOutcome::Denied, 2);
    note("api", "ana", TopOutcome::Allowed, 1);
    note("api", "zoe", TopOutcome::Allowed, 9);
    note("api", "bob", TopOutcome::Denied, 5);

    let heavy = |rule: &str, key: &str, asked, denied| HotKey {
        rule: Some(rule.into()),
        key: vec![key.into()],
        asked,
        denied,
        error: 0,
    };
    let (bob, ana, eve) = (heavy("api", "bob", 5, 5), heavy("api", "ana", 3, 2), heavy("api", "eve", 2, 2));
    let (zoe, login) = (heavy("api", "zoe", 9, 0), heavy("login", "bob", 2, 2));
    assert_eq!(top.most(TopOutcome::Denied, None, 9), [bob.clone(), ana.clone(), eve.clone(), login.clone()]);
    assert_eq!(top.most(TopOutcome::Allowed, None, 9), [zoe, bob.clone(), ana, eve, login.clone()]);
    assert_eq!(top.most(TopOutcome::Denied, Some("login"), 9), [login]);
    assert_eq!(top.most(TopOutcome::Denied, None, 1), [bob]);
    assert_eq!(top.most(TopOutcome::Denied, Some("none"), 9), []);
}

#[test]
fn rules_that_decide_in_turn_are_sampled_alike() {
    pace::seed(SEED);
    let top = Top::new();
    for _ in 0..100_000 {
        top.note(|| at(1), "first", Key::new("ana").as_bytes(), TopOutcome::Allowed);
        top.note(|| at(1), "second", Key::new("ana").as_bytes(), TopOutcome::Allowed);
    }
    let found = top.most(TopOutcome::Allowed, None, 9);
    assert_eq!(found.len(), 2);
    for heavy in found {
        assert!(heavy.asked.abs_diff(100_000) <= heavy.error, "{heavy:?}");
        assert!(heavy.error < 5000, "{heavy:?}");
    }
}

#[test]
fn a_window_is_reported_with_the_one_before_and_then_forgotten() {
    let top = exact();
    let (ana, bob) = (Key::new("ana"), Key::new("bob"));
    let the_most = || top.most(TopOutcome::Denied, None, 9).iter().map(|heavy| heavy.denied).max();
    refuse(&top, at(59), &ana, 20);
    refuse(&top, at(60), &ana, 30);
    assert_eq!(the_most(), Some(50));
    refuse(&top, at(59), &ana, 10); // whose clock was read just before
    refuse(&top, at(119), &bob, 1);
    assert_eq!(the_most(), Some(60));
    refuse(&top, at(120), &bob, 1);
    assert_eq!(the_most(), Some(40));
    refuse(&top, at(180), &bob, 1);
    assert_eq!(the_most(), Some(2), "only bob is left");
    refuse(&top, at(3600), &bob, 1);
    assert_eq!(the_most(), Some(1));
    assert_eq!(tracked(&top), 1);
    top.turn_to(at(3660));
    assert_eq!(the_most(), Some(1));
    top.turn_to(at(3720));
    assert_eq!(the_most(), None, "there was no request for two minutes");
}

#[test]
fn time_that_jumps_begins_anew_and_a_small_step_does_not() {
    let top = exact();
    let ana = Key::new("ana");
    let steps = [
        (Timestamp::EPOCH, 2),
        (Timestamp::LAST, 2),
        (at(1000), 2),
        (at(0), 2),
        (at(61), 4),
        (at(1), 6),
        (Timestamp::LAST, 2),
        (at(7), 2),
    ];
    for (now, denied) in steps {
        refuse(&top, now, &ana, 2);
        let found = top.most(TopOutcome::Denied, None, 9);
        assert_eq!(found.iter().map(|heavy| heavy.denied).collect::<Vec<_>>(), [denied], "{now:?}");
    }
}

#[test]
fn a_busy_time_makes_another_coarse_only_until_one_is_noted_however_far_the_clock_jumps() {
    pace::seed(SEED);
    let top = Top::new();
    let (ana, bob, eve) = (Key::new("ana"), Key::new("bob"), Key::new("eve"));
    for (busy, quiet) in [(at(1), at(200)), (Timestamp::LAST, at(7)), (Timestamp::EPOCH, at(9000))] {
        refuse(&top, busy, &ana, 100_000);
        refuse(&top, quiet, &bob, 1000);
        refuse(&top, quiet, &eve, 3);
        let found = top.most(TopOutcome::Denied, None, 9);
        assert_eq!(names(&found), ["bob", "eve"]);
        assert!(found[0].denied.abs_diff(1000) < 50, "{found:?}");
        assert_eq!((found[1].denied, found[1].error), (3, 0));
    }
}

#[test]
fn long_keys_are_distinguished_by_the_part_that_is_not_kept() {
    let top = exact();
    let long = "x".repeat(64 * 1024);
    let [one, other] = [Key::new(("é", format!("{long}1"))), Key::new(("é", format!("{long}2")))];
    refuse(&top, at(1), &one, 7);
    refuse(&top, at(1), &other, 5);
    refuse(&top, at(1), &Key::new(&*long), 3);

    let found = top.most(TopOutcome::Denied, None, 9);
    assert_eq!(found.iter().map(|heavy| heavy.denied).collect::<Vec<_>>(), [7, 5, 3]);
    assert_ne!(found[0].key, found[1].key);
    assert_eq!(found[0].key[0], "é");
    let (shown, mark) = found[0].key[1].split_once('…').expect("it is cut");
    assert_eq!((shown, mark.len()), (&long[..MAX_SHOWN_BYTES - 6], 8));
}

#[test]
fn a_key_is_shown_as_text_that_prints() {
    let shown = |parts: &[&[u8]]| {
        let top = exact();
        refuse(&top, at(1), &Key::from_parts(parts), 1);
        top.most(TopOutcome::Denied, None, 1).remove(0).key
    };
    assert_eq!(shown(&[]), [""; 0]);
    assert_eq!(shown(&[b"", b"", b"a b"]), ["", "", "a b"]);
    assert_eq!(shown(&["jürgen's \"42\"".as_bytes()]), ["jürgen's \"42\""]);
    assert_eq!(shown(&[b"a\n\x1b\\", b"\xff\xc3"]), ["a\\n\\u{1b}\\\\", "\\xff\\xc3"]);
    assert_eq!(shown(&["a…\u{202e}".as_bytes()]), ["a\\u{2026}\\u{202e}"]);
    assert_eq!(shown(&[&[b'x'; 127]]), ["x".repeat(127)]);
    let cut = shown(&["é".repeat(200).as_bytes()]);
    assert_eq!(cut[0].split_once('…').map(|(shown, _)| shown), Some(&*"é".repeat(63)));
    let cut = shown(&[format!("x{}", "é".repeat(200)).as_bytes()]);
    assert_eq!(cut[0].split_once('…').map(|(shown, _)| shown), Some(&*format!("x{}", "é".repeat(62))));
    let noise = shown(&[&[0xff; 200]]);
    assert!(noise[0].starts_with("\\xff\\xff"), "{noise:?}");
    for first in 100..=127 {
        let parts = shown(&[&[b'x'; 127][..first], &[b'y'; 128], &[b'z'; 200]]);
        assert_eq!(parts[0].trim_end_matches(|mark| mark != 'x'), "x".repeat(first));
        assert_eq!(parts.iter().filter(|part| part.contains('…')).count(), 1, "{parts:?}");
    }
}

#[test]
fn threads_note_at_once_while_another_reads() {
    const EACH: u64 = 50_000;
    let top = exact();
    let keys: Vec<Key> = (0..8).map(|last| Key::new((Ipv4Addr::new(192, 0, 2, last), "login"))).collect();
    thread::scope(|threads| {
        let noting: Vec<_> = (0..4)
            .map(|_| {
                threads.spawn(|| {
                    for turn in 0..EACH {
                        refuse(&top, at(turn / 1000), &keys[(turn % 8) as usize], 1);
                    }
                })
            })
            .collect();
        while !noting.iter().all(|thread| thread.is_finished()) {
            let found = top.most(TopOutcome::Denied, None, 9);
            assert!(found.iter().all(|heavy| heavy.denied <= 4 * EACH / 8 && heavy.error == 0), "{found:?}");
        }
    });
    // While a paused thread holds a shelf, other threads skip it. Only now is every shelf certainly free.
    keys.iter().for_each(|key| refuse(&top, at(50), key, 1));
    assert_eq!(top.most(TopOutcome::Denied, None, 9).len(), keys.len());
    assert_eq!(tracked(&top), keys.len());
}
