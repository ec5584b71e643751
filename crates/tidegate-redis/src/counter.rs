//! Where questions are handed in: in their order, and those of one moment together, so that they leave in one write.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::exchange::{Exchange, Question};
use crate::fault::Fault;
use crate::link::Answered;

/// How many questions are taken up at once.
const AT_ONCE: usize = 256;

/// A question that was handed in.
struct Slip {
    question: Question,
    due: Instant,
    answer: oneshot::Sender<Result<Answered, Fault>>,
}

/// Hands questions to the thread of the connections.
#[derive(Debug)]
pub(crate) struct Counter {
    /// As long as there are callers: each of them waits for its own answer.
    slips: mpsc::UnboundedSender<Slip>,
}

impl Counter {
    pub(crate) fn open(exchange: &Arc<Exchange>, handle: &Handle) -> Counter {
        let (slips, taken_up) = mpsc::unbounded_channel();
        handle.spawn(take_up(exchange.clone(), taken_up));
        Counter { slips }
    }

    /// The answer; nothing if the thread has ended.
    pub(crate) async fn ask(&self, question: Question, due: Instant) -> Option<Result<Answered, Fault>> {
        let (answer, answered) = oneshot::channel();
        self.slips.send(Slip { question, due, answer }).ok()?;
        answered.await.ok()
    }
}

/// Begins all that was handed in, before any of it is written.
async fn take_up(exchange: Arc<Exchange>, mut slips: mpsc::UnboundedReceiver<Slip>) {
    let mut together = Vec::with_capacity(AT_ONCE);
    while slips.recv_many(&mut together, AT_ONCE).await > 0 {
        for Slip { question, due, answer } in together.drain(..) {
            let exchange = exchange.clone();
            tokio::spawn(async move {
                // Whoever has gone away does not hear it.
                let _ = answer.send(exchange.ask(&question, due).await);
            });
        }
    }
}
