//! Ports that stay ours while one server has gone and the next has not come.
//!
//! A socket that is bound but does not listen keeps the system from giving its port to another process.
//! A server that allows its address to be used again, as all here do, may listen there all the same.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{self, AddressFamily, SocketType, sockopt};

/// How far the port of a cluster's bus is from that of its clients.
const BUS: u16 = 10_000;

/// Pairs that are tried before the machine is called full.
const TRIES: usize = 1_000;

/// A port of loopback, for as long as this lives.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl Port {
    /// One that is free.
    pub fn free() -> Port {
        Port::bind(0).unwrap_or_else(|error| panic!("a port of loopback: none is free: {error}"))
    }

    /// One that is free like the one that belongs to it for the bus of a cluster.
    pub fn with_bus() -> (Port, Port) {
        let pair = || {
            let port = Port::free();
            let bus = Port::bind(port.number().checked_add(BUS)?).ok()?;
            Some((port, bus))
        };
        let found = (0..TRIES).find_map(|_| pair());
        found.unwrap_or_else(|| panic!("two ports of loopback, {BUS} apart: none are free"))
    }

    fn bind(number: u16) -> rustix::io::Result<Port> {
        let wanted: SocketAddr = ([127, 0, 0, 1], number).into();
        let socket = net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        net::bind(&socket, &wanted)?;
        // Said only now: before, a port that another one of us keeps would have been taken as well.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        let address = net::getsockname(&socket)?.try_into()?;
        Ok(Port { address, _socket: socket })
    }

    /// Where to listen, and to connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its number.
    pub fn number(&self) -> u16 {
        self.address.port()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_kept_port_can_be_listened_to_again_and_again() {
        let port = Port::free();
        for _ in 0..3 {
            drop(TcpListener::bind(port.address()).unwrap());
        }
    }

    #[test]
    fn a_kept_port_is_not_kept_twice() {
        let port = Port::free();
        assert!(Port::bind(port.number()).is_err());
    }

    #[test]
    fn the_bus_is_where_a_cluster_looks_for_it() {
        let (port, bus) = Port::with_bus();
        assert_eq!(bus.number(), port.number() + BUS);
    }
}
