//! The time since the machine started, the identity of this start, and the wall clock.
//!
//! The boot-time clock advances while the machine is suspended, and all processes of a host read the same value. On
//! systems without one, it is the monotonic clock since the first reading by this process; then no state outlives the
//! process.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The file in which a Linux kernel identifies this start of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The identity of a start of the machine.
pub(crate) type BootId = [u8; 16];

/// Returns the identity of this start of the machine, if it is available.
pub(crate) fn boot_id() -> Option<BootId> {
    parse(&fs::read_to_string(BOOT_ID).ok()?)
}

/// Returns the wall clock, as the time since 1970. It can be set to any time, so no decision uses it.
#[expect(clippy::disallowed_methods, reason = "only the wall clock goes on while the machine is off")]
pub(crate) fn wall() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO)
}

/// 2024-01-01T00:00Z, a Monday, since 1970: the epoch of every store that uses the clocks of a machine. So days begin
/// at midnight UTC and weeks on Monday, in memory, in a file and on Redis.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_704_067_200);

/// The first wall time that is ignored: 2050. Timestamps end about ten years later.
const FIRST_NOT_BELIEVED: Duration = Duration::from_secs(2_524_608_000);

/// Returns the time since the epoch of a wall clock. Returns `None` before 2024 or after 2049: then the clock was never
/// set.
pub(crate) fn since_epoch(wall: Duration) -> Option<Duration> {
    wall.checked_sub(EPOCH).filter(|_| wall < FIRST_NOT_BELIEVED)
}

/// Returns the time since the epoch by the wall clock of this machine, unless that clock is ignored.
pub(crate) fn wall_since_epoch() -> Option<Duration> {
    // Miri and the models run without a real clock.
    if cfg!(any(miri, tidegate_models)) { None } else { since_epoch(wall()) }
}

/// Returns the bytes of 32 hexadecimal digits; dashes are skipped.
fn parse(text: &str) -> Option<BootId> {
    let mut digits = text.trim().chars().filter(|character| *character != '-');
    let mut id = [0; 16];
    for byte in &mut id {
        let (high, low) = (digits.next()?.to_digit(16)?, digits.next()?.to_digit(16)?);
        *byte = u8::try_from(high * 16 + low).ok()?;
    }
    digits.next().is_none().then_some(id)
}

/// Returns the time since the machine started, including suspended time.
#[cfg(all(target_os = "linux", not(any(miri, tidegate_models))))]
pub(crate) fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the time since the first reading.
#[cfg(not(all(target_os = "linux", not(any(miri, tidegate_models)))))]
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the system's clock")]
pub(crate) fn since_boot() -> Duration {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let now = std::time::Instant::now();
    now.saturating_duration_since(*FIRST.get_or_init(|| now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_the_start_never_goes_back() {
        let mut last = since_boot();
        for _ in 0..1000 {
            let now = since_boot();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    #[cfg_attr(
        any(miri, tidegate_models, not(target_os = "linux")),
        ignore = "it is counted from another epoch"
    )]
    fn the_time_since_the_start_is_that_of_the_kernel() {
        let before = since_boot().as_secs_f64();
        let text = fs::read_to_string("/proc/uptime").unwrap();
        let after = since_boot().as_secs_f64();
        // The kernel reports hundredths of a second.
        let seconds: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
        assert!((before - 0.1..=after + 0.1).contains(&seconds), "{text} between {before} and {after}");
    }

    #[test]
    #[cfg_attr(any(miri, not(target_os = "linux")), ignore = "it needs the kernel")]
    fn the_start_of_the_machine_has_a_name_that_stays() {
        let id = boot_id().expect("a kernel that names its start");
        assert_ne!(id, [0; 16]);
        assert_eq!(boot_id(), Some(id));
    }

    #[test]
    fn a_wall_clock_is_believed_from_2024_to_2049() {
        let seconds = |seconds| since_epoch(Duration::from_secs(seconds)).map(|since| since.as_secs());
        assert_eq!([0, 1_704_067_199, 2_524_608_000, u64::MAX].map(seconds), [None; 4]);
        assert_eq!([1_704_067_200, 2_524_607_999].map(seconds), [Some(0), Some(820_540_799)]);
    }

    #[test]
    fn a_name_is_sixteen_bytes_in_digits() {
        let id = 0x0f20_3142_5364_7586_97a8_b9ca_dbec_fd0e_u128.to_be_bytes();
        assert_eq!(parse("0f203142-5364-7586-97a8-b9cadbecfd0e\n"), Some(id));
        assert_eq!(parse("0F2031425364758697A8B9CADBECFD0E"), Some(id));
        assert_eq!(parse("0f203142 5364-7586-97a8-b9cadbecfd0e"), None);
        for odd in
            ["", "-", "0f", "0f203142-5364-7586-97a8-b9cadbecfd0", "0f203142-5364-7586-97a8-b9cadbecfd0e0"]
        {
            assert_eq!(parse(odd), None, "{odd}");
        }
        assert_eq!(parse("0g203142-5364-7586-97a8-b9cadbecfd0e"), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it needs the system's clock")]
    fn the_wall_clock_is_past_2020() {
        assert!(wall() > Duration::from_secs(1_577_836_800));
    }
}
