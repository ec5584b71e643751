//! The connection thread. It makes a store usable from any runtime, or none.
//!
//! A store may be used from several runtimes, and a connection belongs to the runtime that opened it. All connections
//! therefore live on one thread with a runtime of its own.

use std::io;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A thread that runs tasks until this is dropped. On drop the runtime ends, and with it all tasks and connections.
/// Pending callers get a fault.
#[derive(Debug)]
pub(crate) struct Background {
    /// The handle of the runtime.
    handle: Handle,
    /// The sender whose drop ends the thread.
    _end: oneshot::Sender<()>,
}

impl Background {
    /// Starts the thread. Fails if the system provides no thread, or no event queue for input and output.
    pub(crate) fn start() -> io::Result<Background> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("tidegate-redis".to_owned()).spawn(move || {
            // No value is ever sent: the drop of the sender is the signal.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Background { handle, _end: end })
    }

    /// Returns the handle by which tasks are started on the thread.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

/// The pause before a task that has panicked is restarted.
const AFTER_A_PANIC: Duration = Duration::from_millis(500);

/// Runs a task to its end. If it panics, the panic is reported on standard error and the task restarts. Other tasks are
/// not affected by the panic. The task closure is called anew for each run, so a run starts with fresh state.
pub(crate) fn go_on<F: Future<Output = ()> + Send + 'static>(
    handle: &Handle,
    task: impl Fn() -> F + Send + 'static,
) {
    let runs = handle.clone();
    handle.spawn(async move {
        while runs.spawn(task()).await.is_err_and(|error| error.is_panic()) {
            tokio::time::sleep(AFTER_A_PANIC).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_task_that_panics_begins_anew() {
        let background = Background::start().unwrap();
        let (tries, seen) = (Arc::new(AtomicU32::new(0)), tokio::sync::mpsc::unbounded_channel());
        let (sender, mut receiver) = seen;
        go_on(background.handle(), move || {
            let (tries, sender) = (tries.clone(), sender.clone());
            async move {
                let nth = tries.fetch_add(1, Ordering::Relaxed);
                assert!(nth > 0, "the first panics");
                sender.send(nth).unwrap();
            }
        });
        assert_eq!(receiver.blocking_recv(), Some(1));
    }
}
