//! Awaits several futures at once.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// What each of them resolves to, in their order, when all have.
pub(crate) async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    let all = poll_fn(|context| {
        let mut is_ready = true;
        for (future, output) in waiting.iter_mut().filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(value) => *output = Some(value),
                Poll::Pending => is_ready = false,
            }
        }
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    });
    pin!(all).await;
    waiting.into_iter().filter_map(|(_, output)| output).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_come_in_the_order_of_the_futures() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let outputs = runtime.block_on(join_all((0..5_u64).map(|nth| async move {
            tokio::time::sleep(std::time::Duration::from_millis(5 - nth)).await;
            nth
        })));
        assert_eq!(outputs, [0, 1, 2, 3, 4]);
        assert!(runtime.block_on(join_all(std::iter::empty::<std::future::Ready<()>>())).is_empty());
    }
}
