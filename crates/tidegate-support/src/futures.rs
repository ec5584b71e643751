//! Futures without a runtime.
//!
//! Libraries of this workspace run under any executor, so they use neither tasks nor timers of one. A crate of
//! combinators would be a dependency for two functions.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// Returns the outputs of all futures in their order, once each is ready. They are first polled in this order, and none
/// waits for another. Each wake polls every pending future again, so it is meant for tens of futures, not thousands. If
/// it is dropped, all pending futures are.
#[doc(alias = "concurrency")]
pub async fn join_all<F: Future + Unpin>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut each: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    poll_fn(|context| {
        let mut is_ready = true;
        for (future, output) in each.iter_mut().filter(|(_, output)| output.is_none()) {
            match Pin::new(future).poll(context) {
                Poll::Ready(value) => *output = Some(value),
                Poll::Pending => is_ready = false,
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    each.into_iter().filter_map(|(_, output)| output).collect()
}

/// Polls a future once. Returns its output, or `None` if it is pending. The future is dropped if it is pending, so its
/// work is lost. It is for futures that are ready in practice, such as those of a store in memory.
#[doc(alias = "now_or_never")]
#[doc(alias = "poll once")]
#[inline]
pub fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    /// Returns a future that is ready at its `n`th poll, with the output `n`.
    fn at_poll(n: u64) -> impl Future<Output = u64> + Unpin {
        let mut polls = 0;
        poll_fn(move |_| {
            polls += 1;
            if polls < n { Poll::Pending } else { Poll::Ready(n) }
        })
    }

    #[test]
    fn outputs_come_in_the_order_of_the_futures_whichever_is_ready_first() {
        let mut all = pin!(join_all([3, 1, 2].map(at_poll)));
        let mut context = Context::from_waker(Waker::noop());
        assert!(all.as_mut().poll(&mut context).is_pending());
        assert!(all.as_mut().poll(&mut context).is_pending());
        assert_eq!(all.as_mut().poll(&mut context), Poll::Ready(vec![3, 1, 2]));
        assert_eq!(at_once(join_all(std::iter::empty::<std::future::Ready<()>>())), Some(Vec::new()));
    }

    #[test]
    fn a_future_that_waits_has_no_output_at_once() {
        assert_eq!(at_once(at_poll(1)), Some(1));
        assert_eq!(at_once(at_poll(2)), None);
        assert_eq!(at_once(pending::<()>()), None);
    }
}
