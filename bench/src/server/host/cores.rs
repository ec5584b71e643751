//! The server on one core, the load on another, where there are two.
//!
//! A process inherits the cores of the thread that starts it, so nothing has to be moved afterwards.

use std::sync::LazyLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores of the server and of the load; read before this thread stays on one.
static CORES: LazyLock<Option<(usize, usize)>> = LazyLock::new(|| {
    let set = sched_getaffinity(None).ok()?;
    let mut usable = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    usable.next().zip(usable.next())
});

/// Does this on the core of the server, and returns to the core of the load.
pub(super) fn on_core_of_server<T>(start: impl FnOnce() -> T) -> T {
    let Some((server, load)) = *CORES else { return start() };
    stay_on(server);
    let started = start();
    stay_on(load);
    started
}

fn stay_on(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    if let Err(error) = sched_setaffinity(None, &set) {
        eprintln!("not kept on core {core}: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_started_on_another_core_than_that_of_the_load() {
        let here = || (0..CpuSet::MAX_CPU).find(|core| sched_getaffinity(None).unwrap().is_set(*core));
        // Another thread of the tests is not to be moved.
        let (server, load) = std::thread::spawn(move || (on_core_of_server(here), here())).join().unwrap();
        assert_eq!(CORES.is_some(), server != load);
    }
}
