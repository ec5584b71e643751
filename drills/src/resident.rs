//! What the system says that a process takes.

use std::fs;

/// What is resident of this process, in bytes.
pub(crate) fn resident() -> Result<u64, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    resident_in(&status).ok_or_else(|| "/proc/self/status does not say what is resident".to_owned())
}

fn resident_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Bytes in mebibytes, to read.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_part_is_read_from_its_line() {
        let status = "Name:\tdrills\nVmHWM:\t  9999 kB\nVmRSS:\t  2048 kB\n";
        assert_eq!(resident_in(status), Some(2 << 20));
        assert_eq!(resident_in("Name:\tdrills\n"), None);
        assert_eq!(mebibytes(3 << 19), "1.5 MiB");
    }
}
