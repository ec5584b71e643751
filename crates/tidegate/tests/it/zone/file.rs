//! Zones in files, as programs use them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tidegate::{HOUR, Limit, Limiter, ManualClock, SECOND, Zone};

/// A folder of its own for each test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("tidegate-it-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Folder(path)
    }

    fn zone(&self) -> PathBuf {
        self.0.join("zone.tg")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> Zone {
    Zone::in_file(path, 1 << 16).expect("a zone")
}

fn limiter(zone: &Zone) -> Limiter {
    Limiter::on(zone, "user", Limit::per_hour(3))
}

#[test]
fn what_is_owed_survives_the_zone() {
    let folder = Folder::new();
    for passes in [3, 0, 0] {
        let zone = open(&folder.zone());
        let limiter = limiter(&zone);
        assert_eq!((0..5).filter(|_| limiter.admit("ana").is_allowed()).count(), passes);
        zone.flush().expect("it is written");
    }
    let zone = open(&folder.zone());
    assert!(limiter(&zone).admit("bob").is_allowed());
    assert!(zone.name().ends_with("zone.tg"));
    assert_eq!(zone.clone().bytes(), 1 << 16);
}

#[test]
fn two_who_open_one_file_share_what_is_owed() {
    let folder = Folder::new();
    let zones = [open(&folder.zone()), open(&folder.zone())];
    let limiters = zones.each_ref().map(limiter);
    for key in 0..200_u32 {
        let admit = |limiter: &Limiter| (0..3).filter(|_| limiter.admit(key).is_allowed()).count();
        let passed: usize = thread::scope(|scope| {
            let threads = limiters.each_ref().map(|limiter| scope.spawn(move || admit(limiter)));
            threads.into_iter().map(|thread| thread.join().expect("nobody panics")).sum()
        });
        assert_eq!(passed, 3, "key {key}");
    }
}

#[test]
fn time_goes_on_from_one_process_to_the_next() {
    let folder = Folder::new();
    let clock = Arc::new(ManualClock::new());
    let open = || Zone::in_file_with_clock(folder.zone(), 4096, clock.clone()).expect("a zone");
    let first = limiter(&open());
    assert_eq!((0..5).filter(|_| first.admit("ana").is_allowed()).count(), 3);
    drop(first);
    clock.advance(HOUR / 3 - SECOND);
    assert!(!limiter(&open()).admit("ana").is_allowed());
    clock.advance(SECOND);
    assert!(limiter(&open()).admit("ana").is_allowed());
}

#[test]
fn what_is_no_zone_of_this_size_is_refused_and_left_alone() {
    let folder = Folder::new();
    drop(open(&folder.zone()));
    let wrong_size = Zone::in_file(folder.zone(), 1 << 20).unwrap_err();
    assert!(wrong_size.is_wrong_size(), "{wrong_size}");
    let foreign = folder.0.join("notes.txt");
    fs::write(&foreign, "dear diary".repeat(1000)).expect("it is written");
    let refused = Zone::in_file(&foreign, 1 << 16).unwrap_err();
    assert!(refused.is_not_a_zone() && refused.to_string().contains("notes.txt"), "{refused}");
    assert_eq!(fs::read_to_string(&foreign).expect("it is there"), "dear diary".repeat(1000));
    let nowhere = Zone::in_file(folder.0.join("no/such/folder/zone.tg"), 1 << 16).unwrap_err();
    assert!(nowhere.to_string().contains("no/such/folder"), "{nowhere}");
}
