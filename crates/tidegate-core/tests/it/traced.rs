//! The events of the feature `tracing`.

use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use smol::block_on;
use tidegate::{
    Adjusted, Adjustment, Ask, Decision, Decisions, DirectLimiter, FallbackStore, Limit, Limiter, Map,
    PermitId, Permits, SharedLimiter, Store, StoreError, StoreFuture, Subject, Zone,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A subscriber that keeps events as lines of text.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").expect("a string takes any text");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} {}", event.metadata().level(), event.metadata().target()));
        event.record(&mut line);
        self.0.lock().expect("not poisoned").push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns the events of a program.
fn events(program: impl FnOnce()) -> Vec<String> {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), program);
    let lines = lines.0.lock().expect("not poisoned");
    lines.clone()
}

/// A call that is allowed once.
type Call = Box<dyn Fn()>;

#[test]
fn each_denial_is_an_event_without_its_key() {
    let limit = Limit::per_hour(1);
    let zone = Zone::new(1 << 16);
    let calls: [(&str, Call); 6] = [
        (
            "api",
            Box::new({
                let limiter = Limiter::on(&zone, "api", limit);
                move || assert!(limiter.admit("ana").limit() == 1)
            }),
        ),
        (
            "tracked",
            Box::new({
                let limiter = Limiter::on(&zone, "tracked", limit);
                move || drop(limiter.admit_tracked("ana"))
            }),
        ),
        (
            "",
            Box::new({
                let limiter = DirectLimiter::new(limit);
                move || assert!(limiter.admit().limit() == 1)
            }),
        ),
        (
            "",
            Box::new({
                let limiter = DirectLimiter::new(limit);
                move || drop(limiter.admit_tracked(Ask::ONE))
            }),
        ),
        (
            "shared",
            Box::new({
                let limiter = SharedLimiter::on(&zone, "shared", limit);
                move || drop(block_on(limiter.admit("ana")))
            }),
        ),
        (
            "",
            Box::new({
                let (permits, held) = (Permits::at_most(1), Mutex::new(Vec::new()));
                move || held.lock().expect("not poisoned").extend(permits.admit("ana"))
            }),
        ),
    ];
    for (number, (name, call)) in calls.iter().enumerate() {
        assert_eq!(events(call), [""; 0], "call {number} is allowed");
        let denied = events(call);
        assert_eq!(denied.len(), 1, "call {number}: {denied:?}");
        let begin = format!("DEBUG tidegate message=denied limiter={name:?} limit=1 remaining=0");
        assert!(denied[0].starts_with(&begin) && !denied[0].contains("ana"), "call {number}: {denied:?}");
    }
}

/// A store that is down while its switch is on.
#[derive(Clone, Debug, Default)]
struct Switched(Map, Arc<AtomicBool>);

impl Store for Switched {
    fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> StoreFuture<'a, Decisions> {
        if self.1.load(Ordering::Relaxed) {
            return StoreFuture::failed(StoreError::unavailable("connection refused"));
        }
        Store::take(&self.0, asks)
    }

    fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> StoreFuture<'a, Decision> {
        Store::peek(&self.0, subject, ask)
    }

    fn adjust<'a>(&'a self, subject: Subject<'a>, adjustment: Adjustment) -> StoreFuture<'a, Adjusted> {
        Store::adjust(&self.0, subject, adjustment)
    }

    fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        Store::release(&self.0, subject, permit)
    }

    fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        Store::renew(&self.0, subject, permit)
    }

    fn reset<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
        Store::reset(&self.0, subject)
    }

    fn reset_limit<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
        Store::reset_limit(&self.0, subject)
    }
}

#[test]
fn an_outage_is_two_events_however_many_requests_it_meets() {
    let remote = Switched::default();
    let store = FallbackStore::new(Arc::new(remote.clone()), &Zone::new(1 << 16));
    let limiter = SharedLimiter::on(&store, "api", Limit::per_hour(100));
    let lines = events(|| {
        for is_down in [false, true, true, true, false, false, true] {
            remote.1.store(is_down, Ordering::Relaxed);
            assert!(block_on(limiter.admit("ana")).expect("a fallback decides").is_allowed());
        }
    });
    let words: Vec<_> =
        lines.iter().map(|line| line.split(' ').take(5).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        words,
        [
            "WARN tidegate message=remote store failed",
            "INFO tidegate message=remote store recovered",
            "WARN tidegate message=remote store failed",
        ]
    );
    assert!(lines[0].contains("connection refused"), "{}", lines[0]);
}
