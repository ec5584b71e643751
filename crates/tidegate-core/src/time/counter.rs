//! The clock of the process: the processor's time-stamp counter, if it is reliable.
//!
//! The counter is reliable if the processor reports a constant rate in all states and on all cores, and the kernel,
//! which monitors it, does not contradict. Otherwise this is the system's clock. Only this file of the folder has
//! unsafe code: two instructions without a safe wrapper.

use std::sync::LazyLock;
use std::{fs, io};

use super::calibrated::{CalibratedClock, ClockPair};
use super::{Clock, SystemClock, Timestamp};
#[cfg(target_arch = "x86_64")]
use x86_64::{is_steady, time_stamp};

/// The clock of the process, as accurate as [`SystemClock`] and faster to read.
///
/// All instances are the same clock; its epoch is that of [`SystemClock`]. It never goes back. A processor may read its
/// counter some hundred nanoseconds early, so one thread may see a smaller time than another thread has passed to it.
/// Decisions tolerate readings that are out of order by far more than that. It differs from the system's clock by some
/// microseconds; if that clock jumps, it follows within a twentieth of a second.
///
/// ```
/// use tidegate::{Clock, CounterClock};
///
/// let before = CounterClock::new().now();
/// assert!(CounterClock::new().now() >= before);
/// ```
#[doc(alias = "TSC")]
#[doc(alias = "rdtsc")]
#[doc(alias = "quanta")]
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterClock;

impl CounterClock {
    /// Returns the clock of the process.
    pub const fn new() -> CounterClock {
        CounterClock
    }

    /// Returns the ticks of this clock at the start of the machine. A time before the epoch wraps around.
    pub(crate) fn at_boot() -> u64 {
        SYSTEM.at_boot()
    }
}

impl Clock for CounterClock {
    #[inline(always)]
    fn now(&self) -> Timestamp {
        PROCESS.now()
    }
}

static SYSTEM: LazyLock<SystemClock> = LazyLock::new(SystemClock::new);
static PROCESS: LazyLock<Process> = LazyLock::new(|| Process::new(SYSTEM.clone(), is_trusted()));

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one")]
enum Process {
    Counter(CalibratedClock<Hardware>),
    System(SystemClock),
}

impl Process {
    fn new(system: SystemClock, counter_is_trusted: bool) -> Process {
        if counter_is_trusted {
            Process::Counter(CalibratedClock::new(Hardware { system }))
        } else {
            Process::System(system)
        }
    }

    #[inline(always)]
    fn now(&self) -> Timestamp {
        match self {
            Process::Counter(counter) => counter.now(),
            Process::System(system) => system.now(),
        }
    }
}

#[derive(Debug)]
struct Hardware {
    system: SystemClock,
}

impl ClockPair for Hardware {
    #[inline]
    fn counter(&self) -> u64 {
        time_stamp()
    }

    fn system(&self) -> Timestamp {
        self.system.now()
    }
}

/// The file in which a Linux kernel reports its clock source.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

fn is_trusted() -> bool {
    // Miri has no counter, and loom's atomics cannot be in a static.
    if cfg!(any(miri, tidegate_models)) {
        return false;
    }
    deserves_trust(is_steady(), || fs::read_to_string(CLOCK_SOURCE))
}

/// Returns true for a steady counter, if the kernel uses it as its clock source or has no such file.
fn deserves_trust(is_steady: bool, clock_source: impl FnOnce() -> io::Result<String>) -> bool {
    is_steady
        && match clock_source() {
            Ok(name) => name.trim() == "tsc",
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use core::arch::x86_64::{__cpuid, _rdtsc, CpuidResult};

    /// Returns the time-stamp counter. The processor may read it slightly before preceding instructions complete. A
    /// fence would double the cost of the reading, and decisions tolerate readings that are out of order.
    #[inline]
    #[expect(unsafe_code, reason = "the instruction has no safe name")]
    pub(super) fn time_stamp() -> u64 {
        // SAFETY: every x86-64 has a time-stamp counter.
        unsafe { _rdtsc() }
    }

    /// Returns true if the processor reports a counter of constant rate that never stops.
    pub(super) fn is_steady() -> bool {
        has_invariant_counter(identification)
    }

    #[expect(unsafe_code, reason = "the instruction has no safe name")]
    #[allow(unused_unsafe, reason = "it has one in later versions of Rust")]
    fn identification(leaf: u32) -> CpuidResult {
        // SAFETY: every x86-64 has `cpuid`.
        unsafe { __cpuid(leaf) }
    }

    pub(super) fn has_invariant_counter(identification: impl Fn(u32) -> CpuidResult) -> bool {
        const HIGHEST_EXTENDED: u32 = 0x8000_0000;
        const POWER_MANAGEMENT: u32 = 0x8000_0007;
        const INVARIANT_COUNTER: u32 = 1 << 8;
        identification(HIGHEST_EXTENDED).eax >= POWER_MANAGEMENT
            && identification(POWER_MANAGEMENT).edx & INVARIANT_COUNTER != 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn time_stamp() -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn is_steady() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::time::boot::since_boot;
    use crate::time::{OUT_OF_ORDER, Ticks};

    #[test]
    fn between_threads_time_is_out_of_order_by_no_more_than_is_forgiven() {
        let rounds = if cfg!(miri) { 50 } else { 1_000_000 };
        let process = Process::new(SystemClock::new(), is_trusted());
        let last = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut own = 0;
                    for _ in 0..rounds {
                        let seen = last.load(Ordering::Acquire);
                        let now = process.now().ticks();
                        assert!(now + OUT_OF_ORDER.get() >= seen, "{now} after {seen}");
                        assert!(now >= own, "on one thread {now} after {own}");
                        own = now;
                        last.fetch_max(now, Ordering::AcqRel);
                    }
                });
            }
        });
    }

    #[test]
    fn time_stays_with_the_system() {
        let until = Duration::from_millis(if cfg!(miri) { 1 } else { 200 });
        let error = Ticks::saturating_from(Duration::from_millis(5));
        let system = SystemClock::new();
        let process = Process::new(system.clone(), is_trusted());
        let end = system.now().saturating_add(Ticks::saturating_from(until));
        let is_done = (0..100_000_000).any(|_| {
            let before = system.now();
            let now = process.now();
            let after = system.now();
            assert!(now >= before.saturating_sub(error), "{now:?} after {before:?}");
            assert!(now <= after.saturating_add(error), "{now:?} before {after:?}");
            after >= end
        });
        assert!(is_done);
        assert!(match process {
            Process::Counter(counter) => counter.has_line(),
            Process::System(_) => !is_trusted(),
        });
    }

    #[test]
    fn the_clock_of_the_process_goes_with_that_of_the_machine() {
        let at_boot = CounterClock::at_boot();
        let by_machine =
            || Timestamp::from_ticks(Ticks::saturating_from(since_boot()).get().wrapping_add(at_boot));
        let (before, process, after) = (by_machine(), CounterClock::new().now(), by_machine());
        assert!(process.saturating_add(OUT_OF_ORDER) > before, "{process:?} after {before:?}");
        assert!(process < after.saturating_add(OUT_OF_ORDER), "{process:?} before {after:?}");
        assert_eq!(CounterClock::at_boot(), at_boot);
    }

    #[test]
    fn a_counter_that_is_not_trusted_is_not_read() {
        assert!(matches!(Process::new(SystemClock::new(), false), Process::System(_)));
    }

    #[test]
    fn all_counter_clocks_are_one_that_goes_on() {
        let first = CounterClock::new().now();
        let mut last = first;
        for _ in 0..1000 {
            let now = CounterClock::new().now();
            assert!(now >= last);
            last = now;
        }
        assert!(last > first);
    }

    #[test]
    #[cfg_attr(any(miri, tidegate_models, not(target_arch = "x86_64")), ignore = "there is no counter")]
    fn a_counter_that_the_kernel_trusts_is_trusted() {
        let kernel_says = |path, word| {
            let text: io::Result<String> = fs::read_to_string(path);
            text.is_ok_and(|text| text.split_whitespace().any(|found| found == word))
        };
        if kernel_says(CLOCK_SOURCE, "tsc") && kernel_says("/proc/cpuinfo", "nonstop_tsc") {
            assert!(is_trusted());
        }
    }

    #[test]
    fn a_kernel_that_keeps_time_otherwise_is_believed() {
        assert!(deserves_trust(true, || Ok("tsc\n".to_owned())));
        assert!(!deserves_trust(true, || Ok("kvm-clock\n".to_owned())));
        assert!(!deserves_trust(true, || Ok(String::new())));
        assert!(deserves_trust(true, || Err(io::ErrorKind::NotFound.into())));
        assert!(!deserves_trust(true, || Err(io::ErrorKind::PermissionDenied.into())));
    }

    #[test]
    fn a_counter_that_is_not_steady_is_not_trusted() {
        assert!(!deserves_trust(false, || Ok("tsc\n".to_owned())));
        assert!(!deserves_trust(false, || Err(io::ErrorKind::NotFound.into())));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn only_a_processor_that_promises_a_steady_counter_has_one() {
        use core::arch::x86_64::CpuidResult;

        let steady = |highest, promises| {
            x86_64::has_invariant_counter(|leaf| match leaf {
                0x8000_0000 => CpuidResult { eax: highest, ebx: 0, ecx: 0, edx: 0 },
                0x8000_0007 => CpuidResult { eax: 0, ebx: 0, ecx: 0, edx: promises },
                _ => unreachable!("{leaf:x}"),
            })
        };
        assert!(steady(0x8000_0007, 0x100));
        assert!(steady(0x8000_0021, 0x1ff));
        assert!(!steady(0x8000_0007, 0x0ff));
        assert!(!steady(0x8000_0006, 0x100));
    }
}
