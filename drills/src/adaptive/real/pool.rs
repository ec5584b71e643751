//! A pool of worker threads with a queue before it: each piece of work is a sleep.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use harness::{Stopwatch, pause};
use tokio::sync::oneshot;

/// Worker threads; dropped, they end when the queue is empty.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Where work is handed in.
#[derive(Clone)]
pub(super) struct Desk(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Work>,
    /// How many of the threads may work.
    active: usize,
    is_over: bool,
    /// The phase in which each piece was handed in, and the time from then to its end.
    finished: Vec<(usize, Duration)>,
    phase: usize,
}

struct Work {
    length: Duration,
    phase: usize,
    handed_in: Stopwatch,
    done: oneshot::Sender<()>,
}

impl Pool {
    pub(super) fn start(threads: usize) -> Pool {
        let state = Mutex::new(State { active: threads, ..State::default() });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let start = |number| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.work(number))
        };
        let threads = (0..threads).map(start).collect();
        Pool { shared, threads }
    }

    pub(super) fn desk(&self) -> Desk {
        Desk(Arc::clone(&self.shared))
    }

    /// Begins a phase in which so many threads work; what they have begun they finish.
    pub(super) fn begin_phase(&self, phase: usize, active: usize) {
        let mut state = self.shared.lock();
        (state.phase, state.active) = (phase, active);
        self.shared.changed.notify_all();
    }

    /// Lets everything be finished, by all threads; the phase and the length of each piece.
    pub(super) fn end(mut self) -> Vec<(usize, Duration)> {
        self.close();
        std::mem::take(&mut self.shared.lock().finished)
    }

    fn close(&mut self) {
        let mut state = self.shared.lock();
        (state.is_over, state.active) = (true, self.threads.len());
        self.shared.changed.notify_all();
        drop(state);
        for thread in self.threads.drain(..) {
            thread.join().unwrap_or_default();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.close();
        }
    }
}

impl Desk {
    /// Hands in a piece of work; it is done whether or not anybody waits for it.
    pub(super) fn hand_in(&self, length: Duration) -> oneshot::Receiver<()> {
        let (done, ended) = oneshot::channel();
        let mut state = self.0.lock();
        let work = Work { length, phase: state.phase, handed_in: Stopwatch::start(), done };
        state.queue.push_back(work);
        self.0.changed.notify_all();
        ended
    }
}

impl Shared {
    fn work(&self, number: usize) {
        while let Some(work) = self.next(number) {
            pause(work.length);
            let took = work.handed_in.elapsed();
            self.lock().finished.push((work.phase, took));
            work.done.send(()).unwrap_or_default();
        }
    }

    fn next(&self, number: usize) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if number < state.active {
                if let Some(work) = state.queue.pop_front() {
                    return Some(work);
                }
                if state.is_over {
                    return None;
                }
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
