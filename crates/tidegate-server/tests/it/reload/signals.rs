//! Tests of SIGHUP.

use rustix::process::Signal;

use super::place::{FILE, Place, rule};
use super::traffic::Asker;

#[test]
fn sighup_reads_at_once_and_a_service_manager_hears_of_it() {
    let place = Place::with("sighup", &rule("once", "1/d"));
    let [mut resp, _] = Asker::each(&place);
    assert!(resp.admits("once", "ana"));
    place.put(FILE, rule("once", "1/2d"));
    place.reload();
    assert!(!resp.admits("once", "ana"));
    let said = place.stop();
    let logged = "\nrules: ./tidegate.toml was read again\n  ~ rule \"once\": 1/d -> 1/2d\n";
    assert_eq!(said.matches(logged).count(), 1, "{said}");
}

#[test]
fn sighup_says_that_nothing_has_changed() {
    let place = Place::with("same", &rule("once", "1/d"));
    place.reload();
    place.reload();
    let said = place.stop();
    let logged = "rules: ./tidegate.toml was read again: nothing has changed\n";
    assert_eq!(said.matches(logged).count(), 2, "{said}");
}

#[test]
fn signals_count_while_the_rules_are_read() {
    let many: String = (0..1000).map(|number| rule(&format!("of-{number}"), "1/d")).collect();
    let place = Place::with("meanwhile", &rule("once", "1/d"));
    place.put(FILE, &many);
    place.hang_up();
    place.put(FILE, rule("last", "1/d"));
    // The first reload may be in progress or over; this signal requests another.
    place.process.signal(Signal::HUP);
    assert_eq!(place.hears(), "READY=1");
    assert!(place.hears().starts_with("RELOADING=1\n"));
    assert_eq!(place.hears(), "READY=1");
    let [mut resp, _] = Asker::each(&place);
    assert!(resp.admits("last", "ana") && !resp.admits("last", "ana"));
    place.put(FILE, &many);
    place.hang_up();
    let said = place.stop();
    // The stop does not wait for the thread that reads the file, so its report may still follow.
    assert!(said.contains("\nstopped\n"), "{said}");
}
