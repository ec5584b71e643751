//! Wakers for tests: one that calls a function, and those that write down who was woken.

use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

/// A waker that calls this.
pub(crate) fn waker(wake: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Call(wake)))
}

struct Call<F>(F);

impl<F: Fn() + Send + Sync> Wake for Call<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

/// Who was woken, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Woken(Arc<Mutex<Vec<u32>>>);

impl Woken {
    /// A waker that writes down this name.
    pub(crate) fn waker(&self, name: u32) -> Waker {
        let log = Arc::clone(&self.0);
        waker(move || log.lock().expect("no writer panics").push(name))
    }

    /// Those woken since the last call.
    pub(crate) fn take(&self) -> Vec<u32> {
        std::mem::take(&mut *self.0.lock().expect("no writer panics"))
    }
}
