//! What goes on without anybody who waits: places in flight that come back, and what was begun for requests that are gone.
//!
//! A request that is dropped may have been given a place, or may be given one in a moment. Its permit was chosen before it
//! was asked for, so it can be given back without the answer, on the thread of the connections. That goes on until the
//! server has answered, or the lease is over.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate::PermitId;
use tokio::time::{Instant, sleep, sleep_until};

use crate::exchange::Question;
use crate::script::{self, Bid, Target};
use crate::store::{Inner, time_by};

/// The most that are under way. A place beyond comes back with its lease; what else is beyond is not done.
const MOST_ON_THEIR_WAY: usize = 4096;
/// The pause before a server that did not answer is asked again.
const BEFORE_ASKING_AGAIN: Duration = Duration::from_millis(250);

/// How many of them are under way.
#[derive(Debug, Default)]
pub(crate) struct OnTheirWay(Arc<AtomicUsize>);

/// One of them.
struct Counted(Arc<AtomicUsize>);

impl OnTheirWay {
    fn enter(&self) -> Option<Counted> {
        let more = |count: usize| (count < MOST_ON_THEIR_WAY).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Counted(Arc::clone(&self.0)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Inner {
    /// Goes on with a task on the thread of the connections.
    pub(crate) fn go_on_with(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        // Nothing was begun through a store that has not started.
        let (Some(running), Some(counted)) = (self.started(), self.on_their_way.enter()) else { return };
        running.background.handle().spawn(async move {
            let _counted = counted;
            task.await;
        });
    }

    /// Gives a place back from this moment on, without anybody who waits.
    pub(crate) fn give_back_later(&self, target: Target, permit: PermitId, from: Instant) {
        let Some(running) = self.started() else { return };
        let (exchange, clock) = (Arc::clone(&running.exchange), self.clock.clone());
        self.go_on_with(Box::pin(async move {
            sleep_until(from).await;
            let lease = script::longest_use(&target.limit).to_duration();
            let over = Instant::now() + lease;
            loop {
                let call = script::release(&target, permit, time_by(clock.as_ref()));
                if exchange.ask_beside(&Question::Run(Arc::new(call))).await.is_ok() {
                    return;
                }
                if Instant::now() + BEFORE_ASKING_AGAIN >= over {
                    return;
                }
                sleep(BEFORE_ASKING_AGAIN).await;
            }
        }));
    }
}

/// The places of a take that is under way. Unless somebody claims them, they are given back when the take is over.
pub(crate) struct Unclaimed<'a> {
    inner: &'a Inner,
    places: Vec<(Target, PermitId)>,
}

impl<'a> Unclaimed<'a> {
    pub(crate) fn of(inner: &'a Inner, bids: &[Bid]) -> Unclaimed<'a> {
        let place = |bid: &Bid| Some((bid.target.clone(), bid.permit()?));
        Unclaimed { inner, places: bids.iter().filter_map(place).collect() }
    }

    /// Whoever asked hears of them.
    pub(crate) fn claim(&mut self) {
        self.places.clear();
    }
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if self.places.is_empty() {
            return;
        }
        // By then the take was answered, or nobody waits for its answer. A place that it did not get is not missed.
        let Ok(over) = self.inner.due() else { return };
        for (target, permit) in self.places.drain(..) {
            self.inner.give_back_later(target, permit, over);
        }
    }
}
