//! Several answers, awaited at the same time.

use std::pin::Pin;
use std::task::Poll;

use tidegate::{Answer, StoreError};

/// All answers in the order of the questions; none waits for another.
pub(super) async fn all<T>(answers: Vec<Answer<'_, T>>) -> Vec<Result<T, StoreError>> {
    let mut each: Vec<_> = answers.into_iter().map(|answer| (answer, None)).collect();
    std::future::poll_fn(|context| {
        let mut is_over = true;
        for (answer, got) in each.iter_mut().filter(|(_, got)| got.is_none()) {
            match Pin::new(answer).poll(context) {
                Poll::Ready(answer) => *got = Some(answer),
                Poll::Pending => is_over = false,
            }
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    each.into_iter().filter_map(|(_, got)| got).collect()
}
