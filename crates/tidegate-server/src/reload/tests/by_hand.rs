//! A watcher schedule that a test controls.

use std::future::pending;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::TIMEOUT;
use crate::reload::Pace;

/// The watcher's end: a look is due when the test triggers it.
#[derive(Debug)]
pub(super) struct ByHand {
    due: UnboundedReceiver<()>,
    over: Sender<()>,
}

/// The test's end.
#[derive(Debug)]
pub(super) struct Looks {
    due: UnboundedSender<()>,
    over: Receiver<()>,
}

pub(super) fn by_hand() -> (ByHand, Looks) {
    let ((due, is_due), (over, is_over)) = (unbounded_channel(), channel());
    (ByHand { due: is_due, over }, Looks { due, over: is_over })
}

impl Pace for ByHand {
    async fn next_look(&mut self) {
        // The test may have ended.
        let _ = self.over.send(());
        if self.due.recv().await.is_none() {
            pending::<()>().await;
        }
    }
}

impl Looks {
    /// Waits until the watcher runs.
    pub(super) fn begin(&self) {
        self.over.recv_timeout(TIMEOUT).expect("the watcher asks when to look");
    }

    /// Triggers one look, and waits until it and the read that it may cause have ended.
    pub(super) fn look(&self) {
        self.due.send(()).expect("the watcher runs");
        self.over.recv_timeout(TIMEOUT).expect("a look comes to an end");
    }
}
