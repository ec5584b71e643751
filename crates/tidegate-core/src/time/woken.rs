//! Wakers for tests: one calls a function, another records its name.

use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

/// Returns a waker that calls this function.
pub(crate) fn waker(wake: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Call(wake)))
}

/// A function as a waker; clones of the waker share it.
struct Call<F>(F);

impl<F: Fn() + Send + Sync> Wake for Call<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// A log of the woken names, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Woken(Arc<Mutex<Vec<u32>>>);

impl Woken {
    /// Returns a waker that records this name.
    pub(crate) fn waker(&self, name: u32) -> Waker {
        let log = Arc::clone(&self.0);
        waker(move || log.lock().expect("no writer panics").push(name))
    }

    /// Returns the names woken since the last call.
    pub(crate) fn take(&self) -> Vec<u32> {
        std::mem::take(&mut *self.0.lock().expect("no writer panics"))
    }
}
