//! A worker: a thread with its own single-threaded runtime. A connection stays on its worker; there is no work
//! stealing.
//!
//! A single-threaded runtime needs no locks between the tasks of a thread, and its wakers stay on one core. The
//! accept loops run on the first worker, so that a server with one thread works as well. The thread is named
//! `tidegate-` and its number.

use std::io;
use std::net::TcpStream as StdStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidegate::DecidedBy;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::engine::{Decided, Engine};
use crate::front::{Front, Scope};
use crate::meter::Meter;

/// The period at which a stopping worker checks if its connections have ended.
const LOOKS: Duration = Duration::from_millis(5);

/// A thread that serves connections.
#[derive(Debug)]
pub(crate) struct Worker {
    /// The handle that accept loops use.
    pub(crate) handle: WorkerHandle,
    /// The thread, joined at shutdown.
    thread: JoinHandle<()>,
}

/// The worker context of a connection: the engine, the meter and the stop signal.
#[derive(Debug)]
pub(crate) struct WorkerContext {
    /// The engine that all workers share.
    pub(crate) engine: Arc<Engine>,
    /// The index of the worker, and of its meter.
    number: usize,
    /// Becomes true when the server stops.
    stopped: watch::Receiver<bool>,
    /// Open connections of both fronts.
    connections: AtomicUsize,
    /// Connections above `max_connections`, for health checks.
    health_connections: AtomicUsize,
}

impl WorkerContext {
    /// Creates a context without connections.
    pub(crate) fn new(engine: Arc<Engine>, number: usize, stopped: watch::Receiver<bool>) -> WorkerContext {
        let (connections, health_connections) = (AtomicUsize::new(0), AtomicUsize::new(0));
        WorkerContext { engine, number, stopped, connections, health_connections }
    }

    /// Returns the counter of connections of this scope.
    fn connections(&self, scope: Scope) -> &AtomicUsize {
        match scope {
            Scope::All => &self.connections,
            Scope::Health => &self.health_connections,
        }
    }

    /// Returns the counters of the thread.
    #[inline]
    pub(crate) fn meter(&self) -> &Meter {
        self.engine.meters().of(self.number)
    }

    /// Counts a decision under a limit that came with its request: in the counters of the thread, and for the report of
    /// the heaviest keys.
    #[inline]
    pub(crate) fn decided(&self, key: &[u8], decided: &Decided) {
        self.meter().decided(&decided.decision);
        self.count_key(key, decided);
    }

    /// Counts a decision for the report of the heaviest keys, unless no store has counted it.
    #[inline]
    pub(crate) fn count_key(&self, key: &[u8], decided: &Decided) {
        if !matches!(decided.by, DecidedBy::Open | DecidedBy::Closed) {
            self.engine.gate().count_dynamic(key, decided.decision.is_allowed());
        }
    }

    /// Resolves when the server stops.
    ///
    /// The future owns its receiver, so it can outlive the borrow of the context.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopped = self.stopped.clone();
        async move {
            // If the sender is gone, the server has stopped as well.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }
    }
}

impl Worker {
    /// Starts the thread and its runtime. Returns an error if the system has no descriptors or threads left.
    pub(crate) fn start(
        number: usize,
        engine: Arc<Engine>,
        stopped: watch::Receiver<bool>,
    ) -> io::Result<Worker> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let worker = Arc::new(WorkerContext::new(engine, number, stopped));
        let own = worker.clone();
        let thread = thread::Builder::new()
            .name(format!("tidegate-{number}"))
            .spawn(move || runtime.block_on(own.watch()))?;
        Ok(Worker { handle: WorkerHandle { runtime: handle, worker }, thread })
    }

    /// Runs a task until it ends, or until the server stops.
    ///
    /// For the tasks of the server itself: accept loops and watchers. Connections end by themselves.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stopped = self.handle.worker.stopped();
        self.handle.runtime.spawn(async move {
            tokio::select! {
                () = task => {}
                () = stopped => {}
            }
        });
    }

    /// Waits until the thread has ended: after all connections, or after the shutdown timeout.
    pub(crate) fn join(self) {
        // A thread that panicked has printed its message.
        let _ = self.thread.join();
    }
}

impl WorkerContext {
    /// Runs until the server has stopped and all connections have ended, or until the shutdown timeout.
    ///
    /// When it returns, the runtime drops the tasks that are left.
    async fn watch(&self) {
        self.stopped().await;
        let ended = async {
            let is_serving = |scope| self.connections(scope).load(Ordering::Relaxed) > 0;
            while is_serving(Scope::All) || is_serving(Scope::Health) {
                sleep(LOOKS).await;
            }
        };
        let _ = timeout(self.engine.settings().bounds.shutdown_timeout, ended).await;
    }
}

/// A handle through which the accept loops assign connections to a worker.
#[derive(Clone, Debug)]
pub(crate) struct WorkerHandle {
    /// The runtime of the worker.
    runtime: Handle,
    /// The context that its connections get.
    worker: Arc<WorkerContext>,
}

impl WorkerHandle {
    /// Returns the number of open connections of this scope.
    pub(crate) fn connections(&self, scope: Scope) -> usize {
        self.worker.connections(scope).load(Ordering::Relaxed)
    }

    /// Serves a connection on this worker.
    ///
    /// Counts the connection before the task starts, so that the next accept sees it.
    pub(crate) fn serve(&self, front: Front, stream: StdStream, scope: Scope) {
        self.worker.connections(scope).fetch_add(1, Ordering::Relaxed);
        let guard = ConnectionGuard { worker: self.worker.clone(), scope };
        self.runtime.spawn(async move {
            // Only a runtime that is shutting down returns an error here.
            if let Ok(stream) = TcpStream::from_std(stream) {
                front.serve(stream, guard.worker.clone(), scope).await;
            }
            drop(guard);
        });
    }
}

/// A guard that decrements the connection count on drop, however the connection ended.
///
/// A panic of the task drops it as well, so the connection limit cannot leak.
struct ConnectionGuard {
    worker: Arc<WorkerContext>,
    scope: Scope,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.worker.connections(self.scope).fetch_sub(1, Ordering::Relaxed);
    }
}
