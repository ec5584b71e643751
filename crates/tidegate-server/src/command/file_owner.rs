//! Finds the process that has a file or a socket open, from `/proc`.
//!
//! A message such as `address already in use` is more useful with the process that uses it. Only processes of the
//! same user are visible without privileges, so the result is a hint. Other systems than Linux have no `/proc`;
//! there the result is always `None`.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Returns the name and ID of a process with an open descriptor that links to one of `targets`, if it is visible.
pub(super) fn holder(targets: &[PathBuf]) -> Option<String> {
    fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
        holds_one(&process.path(), targets).then(|| {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            format!("{} (process {})", name.trim(), process.file_name().display())
        })
    })
}

/// Returns true if the process has a descriptor that links to one of the targets.
fn holds_one(process: &Path, targets: &[PathBuf]) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else { return false };
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| targets.contains(&target)))
}

/// Returns the name and ID of the process that listens on this address, if it is visible.
///
/// Reads the tables of listening TCP sockets of IPv4 and IPv6.
pub(super) fn listener(address: SocketAddr) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let sockets: Vec<_> = tables.iter().flat_map(|table| listeners(table, address)).collect();
    holder(&sockets)
}

/// Returns the sockets of a table that conflict with this address, in the form of descriptor links.
fn listeners(table: &str, address: SocketAddr) -> impl Iterator<Item = PathBuf> {
    table.lines().filter_map(move |line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, local, _, LISTENING, .., _, _, _, _] = fields[..] else { return None };
        let (ip, port) = local.split_once(':')?;
        let is_port = u16::from_str_radix(port, 16).ok()? == address.port();
        let ip = read_ip(ip)?;
        let clashes = ip == address.ip() || ip.is_unspecified() || address.ip().is_unspecified();
        (is_port && clashes)
            .then(|| format!("socket:[{}]", fields.get(9).copied().unwrap_or_default()).into())
    })
}

/// The code of the state `LISTEN`.
const LISTENING: &str = "0A";

/// Parses an address as the kernel writes it: 32-bit words in hexadecimal, each in native byte order.
fn read_ip(text: &str) -> Option<IpAddr> {
    let words: Option<Vec<_>> = text
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok().map(u32::to_ne_bytes))
        .collect();
    let bytes = words?.concat();
    match bytes.len() {
        4 => Some(<[u8; 4]>::try_from(bytes).ok()?.into()),
        16 => Some(<[u8; 16]>::try_from(bytes).ok()?.into()),
        _ => None,
    }
}
