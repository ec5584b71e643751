//! Tests of states of every size in files: across restarts, beside other processes, and in damaged files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conformance::Folder;
use tidegate::{
    Algorithm, Ask, Cost, HOUR, Key, Limit, Limiter, MINUTE, ManualClock, SECOND, Subject, Zone, ZoneError,
    Zones,
};

const MICROSECOND: std::time::Duration = std::time::Duration::from_micros(1);

/// A limit of each algorithm, in each of its state layouts.
const LIMITS: [&str; 11] = [
    "6/h",
    "6/h queue 5 leaky-bucket",
    "6/h fixed-window",
    "6/h fixed-window align first-hit",
    "6/h sliding-log",
    "600/h sliding-log",
    "6/h sliding-window",
    "6/h sliding-window mode estimate",
    "6/h pacer burst 1h",
    "6/h pacer warm-up 1h",
    "6/h concurrency",
];

const BYTES: usize = 1 << 18;

fn limit(text: &str) -> Limit {
    text.parse().expect(text)
}

fn clock() -> Arc<ManualClock> {
    let clock = Arc::new(ManualClock::new());
    clock.advance(1000 * HOUR);
    clock
}

fn open(path: &Path, clock: &Arc<ManualClock>) -> Zone {
    Zone::in_file_with_clock(path, BYTES, clock.clone()).expect("a zone")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// Returns the decision about one more unit, as a caller sees it.
fn fields(zones: &Zones, subject: Subject<'_>) -> (tidegate::Verdict, u64, std::time::Duration) {
    let decision = zones.peek(subject, Ask::ONE);
    (decision.verdict(), decision.remaining(), decision.reset_after())
}

#[test]
fn every_algorithm_survives_in_every_zone() {
    let (folder, clock) = (Folder::new(), clock());
    let zones = |first: &Zone| Zones::new(first).with("logins", BYTES).unwrap().with("api", BYTES).unwrap();
    let limits: Vec<_> = LIMITS.iter().map(|text| (format!("rule {text}"), limit(text))).collect();
    let keys: Vec<_> = (0..20).map(|number| Key::new(format!("key {number}"))).collect();
    let subjects: Vec<_> = limits
        .iter()
        .flat_map(|(rule, limit)| keys.iter().map(move |key| Subject::new(rule, key, limit)))
        .flat_map(|subject| [None, Some("logins"), Some("api")].map(|zone| subject.in_zone(zone)))
        .collect();
    let mut now = zones(&open(&folder.zone(), &clock));
    let mut admitted = vec![0; subjects.len()];
    for round in 0..12_u32 {
        for (number, (subject, admitted)) in subjects.iter().zip(&mut admitted).enumerate() {
            if (number as u32 + round) % 3 != 0 {
                *admitted += u64::from(now.take(*subject, Ask::ONE).0.is_allowed());
            }
        }
        clock.advance(SECOND);
        let before: Vec<_> = subjects.iter().map(|subject| fields(&now, *subject)).collect();
        drop(now);
        now = zones(&open(&folder.zone(), &clock));
        for (subject, before) in subjects.iter().zip(before) {
            assert_eq!(fields(&now, *subject), before, "{} in {:?}", subject.limit(), subject.zone());
        }
    }
    for (subject, admitted) in subjects.iter().zip(admitted) {
        let most = if subject.limit().algorithm() == Algorithm::Pacer {
            8
        } else {
            subject.limit().numbers()[0].max(6)
        };
        assert!(admitted > 0 && admitted <= most, "{}: {admitted}", subject.limit());
    }
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names.len(), 6, "{names:?}");
    for name in names {
        let metadata = fs::metadata(folder.path().join(name)).unwrap();
        assert_eq!(metadata.mode() & 0o777, 0o600);
        assert!(metadata.blocks() * 512 >= metadata.len(), "all of it is reserved");
    }
}

#[test]
fn permits_keep_their_numbers_and_their_leases() {
    let (folder, clock, limit) = (Folder::new(), clock(), limit("3/10m concurrency"));
    let key = Key::new("ana");
    let subject = Subject::new("export", &key, &limit);
    let zone = open(&folder.zone(), &clock);
    let mut permits: Vec<_> = (0..3).map(|_| zone.take(subject, Ask::ONE).0.permit().unwrap()).collect();
    clock.advance(MINUTE);
    assert!(zone.renew(subject, permits[2]));
    drop(zone);
    let zone = open(&folder.zone(), &clock);
    let denied = zone.take(subject, Ask::ONE).0;
    assert_eq!(denied.retry_after(), Some(9 * MINUTE), "the leases go on");
    assert!(zone.release(subject, permits.remove(0)) && zone.renew(subject, permits[0]));
    permits.push(zone.take(subject, Ask::ONE).0.permit().expect("one is back"));
    assert!(!permits[..2].contains(&permits[2]));
    drop(zone);
    let zone = open(&folder.zone(), &clock);
    assert_eq!(zone.peek(subject, Ask::ONE).remaining(), 0);
    assert!(permits.iter().all(|permit| zone.release(subject, *permit)), "each has its number");
    assert!(permits.iter().all(|permit| !zone.release(subject, *permit)), "and gives its place back once");
    assert_eq!(zone.peek(subject, Ask::ONE).remaining(), 3);
    let [one, other] = [(); 2].map(|()| zone.take(subject, Ask::ONE).0.permit().unwrap());
    assert!(zone.release(subject, one));
    drop(zone);
    let zone = open(&folder.zone(), &clock);
    assert_eq!(zone.peek(subject, Ask::ONE).remaining(), 2, "what was released does not come back");
    assert!(!zone.release(subject, one) && zone.release(subject, other));
}

#[test]
fn a_reset_and_a_refund_survive_too() {
    let (folder, clock) = (Folder::new(), clock());
    for text in &LIMITS[3..8] {
        let (limit, ana, bob) = (limit(text), Key::new("ana"), Key::new("bob"));
        let (ana, bob) = (Subject::new("rule", &ana, &limit), Subject::new("rule", &bob, &limit));
        let zone = open(&folder.zone(), &clock);
        let mut receipts = Vec::new();
        for _ in 0..6 {
            clock.advance(SECOND);
            assert!(zone.take(ana, Ask::ONE).0.is_allowed());
            receipts.extend(zone.take(bob, Ask::ONE).1);
        }
        assert!(zone.reset(ana).unwrap());
        let _ = zone.give_back(bob, receipts.remove(2));
        let left = zone.peek(bob, Ask::ONE).remaining();
        drop(zone);
        let zone = open(&folder.zone(), &clock);
        assert_eq!(zone.peek(ana, Ask::ONE).remaining(), limit.numbers()[0], "{text}");
        assert_eq!(zone.peek(bob, Ask::ONE).remaining(), left, "{text}");
        assert!(zone.reset(bob).unwrap());
    }
}

#[test]
fn counts_are_carried_to_other_numbers_across_a_restart() {
    let (folder, clock, key) = (Folder::new(), clock(), "ana");
    for algorithm in ["sliding-log", "sliding-window", "fixed-window align first-hit"] {
        let zone = open(&folder.zone(), &clock);
        let limiter = Limiter::on(&zone, algorithm, limit(&format!("5/h {algorithm}")));
        assert_eq!((0..9).filter(|_| limiter.admit(key).is_allowed()).count(), 5);
        drop((limiter, zone));
        clock.advance(SECOND);
        let zone = open(&folder.zone(), &clock);
        let limiter = Limiter::on(&zone, algorithm, limit(&format!("100/h {algorithm}")));
        assert_eq!(limiter.peek(key).remaining(), 95, "{algorithm}");
    }
}

#[test]
fn a_second_process_shares_states_of_one_word_and_has_no_others() {
    let (folder, log) = (Folder::new(), limit("5/h sliding-log"));
    let bucket = Limit::per_hour(5);
    let [first, second] = [(); 2].map(|()| Zone::in_file(folder.zone(), BYTES).expect("a zone"));
    assert_eq!((first.states_owned_by(), first.supports(&log)), (None, Ok(())));
    assert_eq!(second.states_owned_by(), Some(u64::from(std::process::id())));
    assert_eq!(second.supports(&bucket), Ok(()));
    let why = second.supports(&log).unwrap_err();
    for part in ["sliding-log", "belong to one process", "zone.tg.states", "; use that zone, or try again"] {
        assert!(why.contains(part), "{why}");
    }
    let zones = Zones::new(&second).with("logins", BYTES).unwrap();
    assert!(zones.supports(&log).is_err() && zones.supports(&bucket).is_ok());
    let limiter = Limiter::on(&second, "log", log);
    let denied = limiter.admit("ana");
    assert!(!denied.is_allowed() && denied.is_store_full(), "it is never allowed by accident");
    for (zone, passes) in [(&first, 5), (&second, 0)] {
        let limiter = Limiter::on(zone, "bucket", bucket);
        assert_eq!((0..9).filter(|_| limiter.admit("ana").is_allowed()).count(), passes);
    }
    drop((first, second, zones, limiter));
    let third = Zone::in_file(folder.zone(), BYTES).expect("a zone");
    assert_eq!(third.supports(&log), Ok(()), "the next process has them");
}

#[test]
fn a_zone_whose_name_leads_into_another_folder_has_no_file() {
    let (folder, clock) = (Folder::new(), clock());
    let error = Zones::new(&open(&folder.zone(), &clock)).with("../logins", BYTES).unwrap_err();
    assert!(
        error.to_string().ends_with("a zone in a file has a name without slashes; choose another name"),
        "{error}"
    );
}

fn message(error: &ZoneError) -> String {
    let text = error.to_string();
    text.split_once(": ").map_or(text.clone(), |(_, message)| message.to_owned())
}

/// Returns the instruction of how to start with new files of a zone.
fn anew(path: &Path) -> String {
    format!("stop what uses it and move it and \"{}.*\" away to begin with all counts anew", path.display())
}

const STATES_ANEW: &str = "stop what uses it and move it away: counts of sliding logs, sliding windows, pacers and permits begin anew";

#[test]
fn files_of_another_size_set_or_name_are_rejected_with_a_remedy() {
    let (folder, clock) = (Folder::new(), clock());
    let path = folder.zone();
    let zones = |path: &Path, bytes: usize| Zones::new(&open(path, &clock)).with("logins", bytes);
    drop(zones(&path, BYTES).unwrap());
    let check = |bytes: usize| Zone::check_files(&path, BYTES, [("logins", bytes)]);
    assert!(check(BYTES).is_ok());

    let refused = zones(&path, BYTES / 2).unwrap_err();
    let expected = |path: &Path| {
        let anew = anew(path);
        format!("holds 256 KiB, but 128 KiB were asked for; ask for 256 KiB (262144 bytes), or {anew}")
    };
    let named = with_suffix(&path, ".logins.zone");
    assert!(refused.to_string().ends_with(&expected(&named)), "{refused}");
    assert_eq!(message(&check(BYTES / 2).unwrap_err()), expected(&named));
    assert_eq!(message(&Zone::check_files(&path, BYTES / 2, []).unwrap_err()), expected(&path));
    assert!(Zone::in_file(&path, BYTES / 2).unwrap_err().is_wrong_size());

    fs::rename(&path, with_suffix(&path, ".old")).unwrap();
    fs::rename(with_suffix(&path, ".states"), with_suffix(&path, ".old.states")).unwrap();
    // The first file would be a new one, and the others would not belong to it.
    let left = ["", ".states"].map(|part| with_suffix(&named, part));
    let missing = |left: &[PathBuf]| {
        let left: Vec<_> = left.iter().map(|path| format!("{path:?}")).collect();
        format!(
            "is missing, and other files of its store are there: {}; put it back, or move these away to begin with all counts \
             anew",
            left.join(", ")
        )
    };
    assert_eq!(message(&check(BYTES).unwrap_err()), missing(&left));
    assert_eq!(message(&Zone::in_file(&path, BYTES).unwrap_err()), missing(&left));
    assert!(!path.exists(), "nothing is made beside them");

    let aside = left.clone().map(|path| with_suffix(&path, ".aside"));
    left.iter().zip(&aside).for_each(|(from, to)| fs::rename(from, to).unwrap());
    drop(open(&path, &clock));
    left.iter().zip(&aside).for_each(|(to, from)| fs::rename(from, to).unwrap());
    let other_set = "belongs to another store: the first file was replaced, or this one was copied; put back the files that \
                     belong together, or ";
    let of_named = format!("{other_set}{}", anew(&named));
    assert!(zones(&path, BYTES).unwrap_err().to_string().ends_with(&of_named));
    assert_eq!(message(&check(BYTES).unwrap_err()), of_named);

    fs::copy(with_suffix(&path, ".old.states"), with_suffix(&path, ".states")).unwrap();
    let of_states = format!("{other_set}{STATES_ANEW}");
    assert_eq!(message(&Zone::in_file(&path, BYTES).unwrap_err()), of_states);
    fs::remove_file(&path).unwrap();
    let [one, other] = left;
    let left = [one, other, with_suffix(&path, ".states")];
    assert_eq!(message(&Zone::in_file(&path, BYTES).unwrap_err()), missing(&left));
    assert!(!path.exists(), "nothing is made beside them");
    assert_eq!(message(&Zone::check_files(&path, BYTES, []).unwrap_err()), missing(&left));
    assert_eq!(Zone::files_beside(&path), left);
    fs::copy(with_suffix(&path, ".logins.zone"), &path).unwrap();
    let other_name = "belongs to a zone of another name; put it back in its place, or ";
    assert_eq!(message(&Zone::in_file(&path, BYTES).unwrap_err()), format!("{other_name}{}", anew(&path)));
}

#[test]
fn an_incomplete_state_file_is_rejected_and_unchanged() {
    let (folder, clock, log) = (Folder::new(), clock(), limit("5/h sliding-log"));
    let (path, states) = (folder.zone(), with_suffix(&folder.zone(), ".states"));
    let zone = open(&path, &clock);
    let key = Key::new("ana");
    assert!(zone.take(Subject::new("log", &key, &log), Ask::new(Cost::of(5))).0.is_allowed());
    drop(zone);
    let whole = fs::read(&states).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&states, bytes).unwrap();
        let error = Zone::in_file_with_clock(&path, BYTES, clock.clone()).expect_err("it is refused");
        assert_eq!(fs::read(&states).unwrap(), bytes, "{error}");
        message(&error)
    };
    let damaged = format!("put back a copy of all files of the store, or {STATES_ANEW}");
    assert_eq!(refused(b""), "is empty; remove it, and a state file is made in its place");
    assert_eq!(
        refused(b"something else"),
        "is not a state file, and a zone keeps its states there; move it away, and a state file is made in its place"
    );
    assert_eq!(refused(&whole[..100]), format!("was cut off after 100 bytes; {damaged}"));
    let (made, found) = (whole.len(), whole.len() - 1);
    assert_eq!(refused(&whole[..found]), format!("has {found} bytes, and was made with {made}; {damaged}"));
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] ^= byte;
        bytes
    };
    assert_eq!(refused(&with(30, 1)), format!("was damaged: the checksum of its header is wrong; {damaged}"));
    assert!(refused(&with(16, 2)).starts_with("has format 3, and this program knows 1; run the version"));
    let torn = format!("was damaged: its blocks contradict each other at byte 0; {damaged}");
    assert_eq!(refused(&with(4096 + 8, 0xf0)), torn);
    assert_eq!(message(&Zone::check_states(&path).unwrap_err()), torn);
    assert_eq!(fs::read(&states).unwrap(), with(4096 + 8, 0xf0), "to look changes nothing");
    fs::write(&states, &whole).unwrap();
    assert!(Zone::check_states(&path).is_ok());
    assert_eq!(fs::read(&states).unwrap(), whole);

    fs::remove_file(&states).unwrap();
    fs::create_dir(&states).unwrap();
    let error = Zone::in_file_with_clock(&path, BYTES, clock.clone()).unwrap_err();
    assert_eq!(message(&error), "is a folder where a zone keeps its states; move it away");
    fs::remove_dir(&states).unwrap();
    fs::write(&states, &whole).unwrap();

    fs::remove_file(&states).unwrap();
    symlink(folder.path().join("other"), &states).unwrap();
    let error = Zone::in_file_with_clock(&path, BYTES, clock.clone()).unwrap_err();
    assert_eq!(message(&error), "is a link, which is not followed here; remove it");
    fs::remove_file(&states).unwrap();
    fs::write(&states, &whole).unwrap();
    fs::set_permissions(&states, fs::Permissions::from_mode(0o666)).unwrap();
    let error = Zone::in_file_with_clock(&path, BYTES, clock.clone()).unwrap_err();
    assert_eq!(message(&error), "can be written by others (mode 666); take that from them with `chmod 600`");
    fs::set_permissions(&states, fs::Permissions::from_mode(0o600)).unwrap();
    let zone = open(&path, &clock);
    assert_eq!(zone.peek(Subject::new("log", &key, &log), Ask::ONE).remaining(), 0, "the copy is as good");
}

#[test]
fn a_missing_state_file_beside_its_zone_is_created_and_reported() {
    let (folder, clock) = (Folder::new(), clock());
    let zones = |first: &Zone| Zones::new(first).with("logins", BYTES).unwrap();
    let missed =
        |first: &Zone| [first.missed_states(), zones(first).named("logins").unwrap().missed_states()];
    assert_eq!(missed(&open(&folder.zone(), &clock)), [false, false], "all of them are new");
    assert_eq!(missed(&open(&folder.zone(), &clock)), [false, false]);
    fs::remove_file(with_suffix(&folder.zone(), ".states")).unwrap();
    assert_eq!(missed(&open(&folder.zone(), &clock)), [true, false]);
    fs::remove_file(with_suffix(&folder.zone(), ".logins.zone.states")).unwrap();
    assert_eq!(missed(&open(&folder.zone(), &clock)), [false, true]);
    fs::remove_file(with_suffix(&folder.zone(), ".logins.zone")).unwrap();
    let wrong = Zone::check_files(folder.zone(), BYTES, [("logins", BYTES / 2)]).unwrap_err();
    assert!(wrong.is_wrong_size(), "the state file is looked at without its zone: {wrong}");
}

/// The disk follows the memory in any order, so a power loss can leave a torn file.
#[test]
fn blocks_torn_by_a_machine_restart_are_emptied_and_reported() {
    let (folder, clock, log) = (Folder::new(), clock(), limit("5/h sliding-log"));
    let (path, states) = (folder.zone(), with_suffix(&folder.zone(), ".states"));
    let (key, bucket) = (Key::new("ana"), Limit::per_hour(1));
    let zone = open(&path, &clock);
    assert!(zone.take(Subject::new("log", &key, &log), Ask::new(Cost::of(5))).0.is_allowed());
    assert!(zone.take(Subject::new("bucket", &key, &bucket), Ask::ONE).0.is_allowed());
    assert!(!zone.lost_states());
    drop(zone);
    let mut bytes = fs::read(&states).unwrap();
    bytes[4096 + 8] ^= 0xf0;
    bytes[520] ^= 1; // another start of the machine
    fs::write(&states, &bytes).unwrap();
    let zone = open(&path, &clock);
    assert!(zone.lost_states());
    assert_eq!(zone.peek(Subject::new("log", &key, &log), Ask::ONE).remaining(), 5);
    assert!(!zone.take(Subject::new("bucket", &key, &bucket), Ask::ONE).0.is_allowed(), "cells are whole");
    drop(zone);
    assert!(!open(&path, &clock).lost_states());
}

#[test]
fn memory_and_files_are_counted() {
    let (folder, clock, log) = (Folder::new(), clock(), limit("5/h sliding-log"));
    let zone = open(&folder.zone(), &clock);
    assert_eq!((zone.state_counts().keys, zone.state_counts().file_bytes), (0, BYTES));
    for number in 0..10_u32 {
        let key = Key::new(number);
        let _ = zone.take(Subject::new("log", &key, &log), Ask::ONE);
    }
    let counts = zone.state_counts();
    assert_eq!(counts.keys, 10);
    assert!((1000..10_000).contains(&counts.memory_bytes), "{counts:?}");
    assert_eq!(counts.file_used_bytes, 11 * 128, "a block for each, and a spare one");
    let map = Zone::new(BYTES);
    assert_eq!(map.state_counts().file_bytes, 0);
    zone.flush().expect("both files are written");
}

/// Regression test: a large log that was restored into a small block overwrote its neighbours, and the next start
/// rejected the file.
#[test]
fn a_batch_that_is_undone_after_counts_were_carried_leaves_a_whole_file() {
    let (folder, clock) = (Folder::new(), clock());
    let zone = open(&folder.zone(), &clock);
    let [first, second] = ["1000/s sliding-log", "900/s sliding-log"].map(limit);
    let limiter = Limiter::on(&zone, "log", first);
    for _ in 0..500 {
        clock.advance(MICROSECOND);
        assert!(limiter.admit("ana").is_allowed());
    }
    limiter.set_limit(second);
    clock.advance(SECOND * 3 / 2);
    assert_eq!((0..3).filter(|_| limiter.admit("ana").is_allowed()).count(), 3);
    limiter.set_limit(first);
    let too_long = "k".repeat(600_000);
    let denied = tidegate::admit_all([limiter.ask("ana"), limiter.ask(&*too_long)]);
    assert!(!denied.is_allowed());
    let left = limiter.peek("ana").remaining();
    drop((limiter, zone));
    let zone = open(&folder.zone(), &clock);
    assert_eq!(Limiter::on(&zone, "log", first).peek("ana").remaining(), left);
}

/// Regression test: a release needed room for one more permit, and was lost in a full file.
#[test]
fn permits_come_back_and_are_renewed_in_a_file_that_is_full() {
    let (folder, clock) = (Folder::new(), clock());
    let zone = Zone::in_file_with_clock(folder.zone(), 1 << 16, clock.clone()).expect("a zone");
    let (permits, filler) = (limit("1000/h concurrency"), limit("1/10h sliding-window slots 1"));
    let key = Key::new("ana");
    let subject = Subject::new("export", &key, &permits);
    let take = || zone.take(subject, Ask::ONE).0.permit();
    let mut held: Vec<_> = (0..50).filter_map(|_| take()).collect();
    for number in 0..10_000_u32 {
        let key = Key::new(number);
        let _ = zone.take(Subject::new("filler", &key, &filler), Ask::ONE);
    }
    held.extend(std::iter::from_fn(take));
    let last = zone.take(subject, Ask::ONE).0;
    assert!(last.is_store_full() && held.len() < 1000, "{}", held.len());
    assert!(held.iter().all(|permit| zone.renew(subject, *permit)));
    assert!(held.iter().all(|permit| zone.release(subject, *permit)));
    assert_eq!(zone.peek(subject, Ask::ONE).remaining(), 1000);
}

/// A backward clock step changes the leases of all permits at once.
#[test]
fn many_leases_that_a_clock_has_cut_are_all_in_the_file() {
    let (folder, clock, limit) = (Folder::new(), clock(), limit("500/h concurrency"));
    let key = Key::new("ana");
    let subject = Subject::new("export", &key, &limit);
    let zone = open(&folder.zone(), &clock);
    let mut held: Vec<_> = (0..300).filter_map(|_| zone.take(subject, Ask::ONE).0.permit()).collect();
    clock.step_back(2 * HOUR);
    held.extend(zone.take(subject, Ask::ONE).0.permit());
    let reset = zone.peek(subject, Ask::ONE).reset_after();
    drop(zone);
    let zone = open(&folder.zone(), &clock);
    assert_eq!((held.len(), zone.peek(subject, Ask::ONE).reset_after()), (301, reset));
    assert!(held.iter().all(|permit| zone.release(subject, *permit)));
}

/// Regression test: one large key kept a spare block as large as its own until the process ended.
#[test]
fn the_spare_block_is_as_large_as_the_logs_that_are_left() {
    let (folder, clock, log) = (Folder::new(), clock(), limit("5000/h sliding-log"));
    let zone = open(&folder.zone(), &clock);
    let (large, small) = (Key::new("ana"), Key::new("bob"));
    assert!(zone.take(Subject::new("log", &small, &log), Ask::ONE).0.is_allowed());
    let before = zone.state_counts().file_used_bytes;
    for _ in 0..2000 {
        clock.advance(MICROSECOND);
        assert!(zone.take(Subject::new("log", &large, &log), Ask::ONE).0.is_allowed());
    }
    assert!(zone.state_counts().file_used_bytes > 64 << 10);
    assert!(zone.reset(Subject::new("log", &large, &log)).unwrap());
    assert_eq!(zone.state_counts().file_used_bytes, before);
}
