//! Tests of the concurrency limiter: admission, waiting, denial.

mod adaptive;
mod adversity;
mod classes;
mod line;
mod model;
mod overload;
mod threads;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use tidegate::{AcquireConcurrencyPermit, Class, ClassId, ConcurrencyLimiter, ConcurrencyPermit, Denied};

use crate::waiting::{clock, over, poll};

const CRITICAL: ClassId = ClassId::FIRST;

/// Returns the second class.
fn bulk_class(places: &ConcurrencyLimiter) -> ClassId {
    places.class_named("bulk").expect("it has this class")
}

/// Returns the class of this rank.
fn ranked(places: &ConcurrencyLimiter, rank: usize) -> ClassId {
    places.classes().nth(rank).expect("it has so many classes").0
}

/// Returns critical and bulk classes with these shares.
fn classes(critical: u8, bulk: u8) -> [Class; 2] {
    [Class::new("critical").share(critical), Class::new("bulk").share(bulk)]
}

/// Enters until a call is denied.
fn fill(places: &ConcurrencyLimiter, class: ClassId) -> Vec<ConcurrencyPermit> {
    std::iter::from_fn(|| places.admit(class).ok()).collect()
}

/// Starts to wait.
fn wait(acquire: AcquireConcurrencyPermit) -> AcquireConcurrencyPermit {
    let mut acquire = acquire;
    assert!(poll(&mut acquire).is_pending());
    acquire
}

/// Returns the denial of a waiter that must have been denied.
fn refused(acquire: &mut AcquireConcurrencyPermit) -> Denied {
    over(acquire).expect_err("it was let in")
}

/// A waker that counts its wake-ups.
#[derive(Debug, Default)]
struct Woken(AtomicUsize);

impl Woken {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Starts to wait with a waker that counts.
fn wait_counted(acquire: AcquireConcurrencyPermit) -> (AcquireConcurrencyPermit, Arc<Woken>) {
    let (mut acquire, woken) = (acquire, Arc::new(Woken::default()));
    let waker = Waker::from(woken.clone());
    assert!(Pin::new(&mut acquire).poll(&mut Context::from_waker(&waker)).is_pending());
    (acquire, woken)
}
