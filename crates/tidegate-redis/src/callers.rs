//! The callers that wait for one call to the server, each until its own deadline.
//!
//! One call can serve many callers with different deadlines. The call continues as long as one of them waits.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::counts::Counts;
use crate::fault::Fault;

/// The sender of a reply, or of the fault.
pub(crate) type ReplySender<T> = oneshot::Sender<Result<T, Fault>>;

/// A caller that waits for a reply. It is removed when its reply is sent.
#[derive(Debug)]
pub(crate) struct Caller<T> {
    /// The deadline after which the caller gets a fault.
    pub(crate) due: Instant,
    /// The channel to the caller.
    pub(crate) reply: ReplySender<T>,
    /// The permit for a request in flight; `None` for a call outside the decisions.
    pub(crate) permit: Option<InFlightPermit>,
}

/// The callers that wait for one call, in the order of its asks. Each gets one reply.
#[derive(Debug)]
pub(crate) struct Callers<T> {
    /// The callers by the index of their ask; `None` after the reply.
    waiting: Vec<Option<Caller<T>>>,
    /// The counters of outcomes.
    counts: Arc<Counts>,
}

impl<T> Callers<T> {
    /// Creates an empty list.
    pub(crate) fn new(counts: Arc<Counts>) -> Callers<T> {
        Callers { waiting: Vec::new(), counts }
    }

    /// Appends the caller of the next ask.
    pub(crate) fn push(&mut self, caller: Caller<T>) {
        self.waiting.push(Some(caller));
    }

    /// Splits the callers; `None` for those that have their reply.
    pub(crate) fn split(self) -> impl Iterator<Item = Option<Callers<T>>> {
        let Callers { waiting, counts } = self;
        waiting.into_iter().map(move |caller| {
            let waiting = vec![Some(caller?)];
            Some(Callers { waiting, counts: counts.clone() })
        })
    }

    /// Waits for a future while any caller waits. A caller whose deadline passes gets this fault, and the others keep
    /// waiting. Returns the fault if no caller is left. If the future is dropped with the last caller, a command that
    /// was written stays in flight, and its reply is discarded by the driver.
    pub(crate) async fn within<F: Future>(
        &mut self,
        future: F,
        late: impl Fn() -> Fault,
    ) -> Result<F::Output, Fault> {
        let mut future = pin!(future);
        while let Some(due) = self.waiting.iter().flatten().map(|caller| caller.due).min() {
            if let Ok(output) = timeout_at(due, future.as_mut()).await {
                return Ok(output);
            }
            let (fault, now) = (late(), Instant::now().max(due));
            for place in 0..self.waiting.len() {
                if self.waiting[place].as_ref().is_some_and(|caller| caller.due <= now) {
                    self.answer(place, Err(fault.clone()));
                }
            }
        }
        Err(late())
    }

    /// Sends the reply to one caller, unless it has one. The outcome is counted here, so each caller is counted once.
    pub(crate) fn answer(&mut self, place: usize, answer: Result<T, Fault>) {
        if let Some(Caller { reply, permit, .. }) = self.waiting.get_mut(place).and_then(Option::take) {
            self.counts.outcome(answer.as_ref().err()).add();
            // A caller with a reply is no longer in flight.
            drop(permit);
            // A caller that was dropped does not get the reply.
            let _ = reply.send(answer);
        }
    }

    /// Sends the fault to all remaining callers.
    pub(crate) fn fail(&mut self, fault: &Fault) {
        for place in 0..self.waiting.len() {
            self.answer(place, Err(fault.clone()));
        }
    }
}

/// A permit of the in-flight limit, released on drop. The count is exact: it is incremented before the comparison, and
/// a failed attempt decrements it again.
#[doc(alias = "semaphore")]
#[derive(Debug)]
pub(crate) struct InFlightPermit(Arc<AtomicUsize>);

impl InFlightPermit {
    /// Acquires a permit, if fewer than `at_most` are held.
    pub(crate) fn take(in_flight: &Arc<AtomicUsize>, at_most: usize) -> Option<InFlightPermit> {
        let permit = InFlightPermit(in_flight.clone());
        (in_flight.fetch_add(1, Ordering::Relaxed) < at_most).then_some(permit)
    }
}

impl Drop for InFlightPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_caller_whose_deadline_passes_leaves_the_others_waiting() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (mut callers, now) = (Callers::<u32>::new(Arc::default()), Instant::now());
            let [(late, late_reply), (other, other_reply)] = [oneshot::channel(), oneshot::channel()];
            callers.push(Caller { due: now, reply: late, permit: None });
            callers.push(Caller { due: now + Duration::from_secs(3600), reply: other, permit: None });
            // The future completes when the first caller has its reply.
            let came = callers.within(late_reply, || Fault::Busy).await;
            assert_eq!(came, Ok(Ok(Err(Fault::Busy))));
            callers.answer(1, Ok(7));
            assert_eq!(other_reply.await, Ok(Ok(7)));
            assert_eq!(callers.within(pending::<()>(), || Fault::Busy).await, Err(Fault::Busy), "none waits");
            assert_eq!((callers.counts.answered.get(), callers.counts.overloaded.get()), (1, 1));
        });
    }

    #[test]
    fn a_permit_comes_back_before_its_caller_has_the_answer() {
        let in_flight = Arc::default();
        let (reply, mut replied) = oneshot::channel();
        let permit = InFlightPermit::take(&in_flight, 1);
        assert!(permit.is_some() && InFlightPermit::take(&in_flight, 1).is_none());
        assert_eq!(in_flight.load(Ordering::Relaxed), 1);
        let mut callers = Callers::<u32>::new(Arc::default());
        callers.push(Caller { due: Instant::now(), reply, permit });
        callers.fail(&Fault::Busy);
        assert_eq!(in_flight.load(Ordering::Relaxed), 0);
        assert_eq!(replied.try_recv(), Ok(Err(Fault::Busy)));
    }
}
