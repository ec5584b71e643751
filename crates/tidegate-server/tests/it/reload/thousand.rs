//! Tests that a thousand reloads under load cause no wrong decision.

use std::fs;
use std::ops::RangeInclusive;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use super::place::{FILE, Place, rule};
use super::traffic::Asker;

const RELOADS: u64 = 1000;
/// The period of broken files: one in this many changes.
const BROKEN_EVERY: u64 = 5;
/// The daily limits of the two rules whose numbers change. Each limit has its own state. Counts are carried over to a
/// limit that has none.
const COUNTER: [u64; 4] = [5, 50, 20, 35];
const LOG: [u64; 3] = [3, 7, 5];

/// Changes the file in one of several ways.
fn change(place: &Place, number: u64) {
    let text = text(number);
    match number % BROKEN_EVERY {
        1 => place.put(FILE, &text),
        2 => place.write(FILE, &text),
        3 => {
            let target = format!("target-{}", number % 2);
            place.write(&target, &text);
            place.link(FILE, &target);
        }
        _ => place.put("target", &text),
    }
    if number % BROKEN_EVERY == 4 {
        place.link(FILE, "target");
    }
}

fn is_broken(number: u64) -> bool {
    number.is_multiple_of(BROKEN_EVERY) && number > 0
}

/// Returns the number of the text whose rules are in force after this change.
fn in_force(number: u64) -> u64 {
    if is_broken(number) { number - 1 } else { number }
}

fn text(number: u64) -> String {
    let pick = |of: &[u64]| of[usize::try_from(number).expect("small") % of.len()];
    let mut rules = vec![
        rule("once", ["1/d", "1/2d", "1/d burst 1"][usize::try_from(number).expect("small") % 3]),
        rule("counter", &format!("{}/d", pick(&COUNTER))),
        rule("log", &format!("{}/d sliding-log", pick(&LOG))),
        rule(&format!("of-{number}"), "1/d"),
        "[[rule]]\nname = \"free\"\nwhen = { path = \"/free\" }\ndecision = \"allow\"\n".to_owned(),
        "[[rule]]\nname = \"never\"\nwhen = { path = \"/never\" }\ndecision = \"deny\"\n".to_owned(),
    ];
    if has_extra(number) {
        rules.push(rule("extra", "1/d"));
    }
    if number % 2 == 1 {
        rules.reverse();
    }
    if is_broken(number) {
        rules.insert(3, rule(&format!("broken-{number}"), "1/day"));
    }
    rules.concat()
}

/// Returns true if this text has the rule "extra".
fn has_extra(number: u64) -> bool {
    number % 3 != 1
}

/// The progress of the changes: twice the number of the last one, plus one while the next is being made.
#[derive(Default)]
struct Progress(AtomicU64);

impl Progress {
    fn is(&self, twice: u64) {
        self.0.store(twice, Ordering::SeqCst);
    }

    /// Runs `ask`, and returns the range of changes after which it may have been answered.
    fn during<T>(&self, ask: impl FnOnce() -> T) -> (T, RangeInclusive<u64>) {
        let before = self.0.load(Ordering::SeqCst);
        let answer = ask();
        let after = self.0.load(Ordering::SeqCst);
        (answer, before / 2..=after.div_ceil(2))
    }
}

/// The numbers of admitted requests under the rules whose limits change.
#[derive(Default)]
struct Admitted {
    counter: AtomicU64,
    log: AtomicU64,
}

/// Sends every request once. Every reply has to be right under one of the rules that may have been in force.
fn ask_all(asker: &mut Asker, progress: &Progress, admitted: &Admitted) {
    assert!(!asker.admits("once", "ana"), "who is refused stays refused");
    assert!(asker.admits("free", "ana"), "who is always allowed stays allowed");
    assert!(!asker.admits("never", "ana"), "who is always refused stays refused");
    assert!(asker.admits("nothing", "ana"), "no rule was ever about this");
    let (is_allowed, states) = progress.during(|| asker.admits("extra", "ana"));
    assert!(
        states.clone().any(|number| has_extra(in_force(number)) != is_allowed),
        "the only one of the day is spent; allowed: {is_allowed}, after changes {states:?}"
    );
    admitted.counter.fetch_add(asker.admits("counter", "ana").into(), Ordering::SeqCst);
    admitted.log.fetch_add(asker.admits("log", "ana").into(), Ordering::SeqCst);
}

#[test]
fn a_thousand_reloads_under_load_make_no_wrong_decision_and_drop_no_connection() {
    let place = Place::prepared("thousand", |folder| {
        fs::write(folder.join("target"), text(0)).unwrap();
        symlink("target", folder.join(FILE)).unwrap();
    });
    let [mut resp, mut http] = Asker::each(&place);
    assert!(resp.admits("once", "ana") && http.admits("extra", "ana"));
    let (progress, admitted) = (Progress::default(), Admitted::default());
    thread::scope(|scope| {
        // Each connection runs one round during each change, whatever the speed of the machine.
        let rounds = Asker::each(&place).map(|mut asker| {
            let (start, started) = sync_channel::<()>(1);
            let (progress, admitted) = (&progress, &admitted);
            scope.spawn(move || started.iter().for_each(|()| ask_all(&mut asker, progress, admitted)));
            start
        });
        for number in 1..=RELOADS {
            progress.is(2 * number - 1);
            for start in &rounds {
                start.send(()).expect("every reply was right");
            }
            change(&place, number);
            place.reload();
            progress.is(2 * number);
            ask_all(if number % 2 == 0 { &mut resp } else { &mut http }, &progress, &admitted);
        }
    });
    // No limit admits more than its own amount, however often it comes back.
    let (counter, log) = (admitted.counter.into_inner(), admitted.log.into_inner());
    let (largest, all) = (50, COUNTER.iter().sum());
    assert!((largest..=all).contains(&counter), "{counter} have passed; the limits are {COUNTER:?}");
    let (largest, all) = (7, LOG.iter().sum());
    assert!((largest..=all).contains(&log), "{log} have passed; the limits are {LOG:?}");
    let said = place.stop();
    let broken = RELOADS / BROKEN_EVERY;
    assert_eq!(said.matches("+ rule \"of-").count() as u64, RELOADS - broken, "each came into force, once");
    assert_eq!(
        said.matches(": limit \"1/day\": ").count() as u64,
        broken,
        "each invalid text is reported once"
    );
}
