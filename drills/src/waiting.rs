//! Waiting for another thread without the kernel, as far as that goes.

use std::hint::spin_loop;
use std::thread;

/// Looks before the thread yields the processor.
const LOOKS: u32 = 200;

/// Waits for something that another thread does soon.
pub(crate) fn wait_until(is_so: impl Fn() -> bool) {
    loop {
        for _ in 0..LOOKS {
            if is_so() {
                return;
            }
            spin_loop();
        }
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn it_ends_when_it_is_so() {
        let is_so = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| is_so.store(true, Ordering::SeqCst));
            wait_until(|| is_so.load(Ordering::SeqCst));
        });
    }
}
