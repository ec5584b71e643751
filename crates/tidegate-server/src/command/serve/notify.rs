//! Notifies a service manager of the server's state, as systemd's `Type=notify` requires.
//!
//! The states are `READY=1`, `RELOADING=1` and `STOPPING=1`, one datagram each. Without `NOTIFY_SOCKET` nothing is
//! sent.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixDatagram;

use rustix::time::{ClockId, clock_gettime};

/// Returns the notification before a reload. The time tells the manager which request it answers.
pub(super) fn reloading() -> String {
    let now = clock_gettime(ClockId::Monotonic);
    format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1_000)
}

/// Sends a notification to the socket in `NOTIFY_SOCKET`, if it is set.
pub(super) fn say(state: &str) {
    if let Some(socket) = env::var_os("NOTIFY_SOCKET") {
        // An error is ignored: the server runs with or without a manager.
        let _ = send(&socket, state);
    }
}

/// Sends one datagram. A name that starts with `@` is in the abstract namespace of Linux.
#[cfg(target_os = "linux")]
fn send(socket: &OsStr, state: &str) -> io::Result<usize> {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::net::SocketAddr;

    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
}

#[cfg(not(target_os = "linux"))]
fn send(socket: &OsStr, state: &str) -> io::Result<usize> {
    UnixDatagram::unbound()?.send_to(state.as_bytes(), socket)
}
