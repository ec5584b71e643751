//! Those who connect, and stay until they leave all at once.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use harness::{Complaints, Process, beside, cpu_time_of};

/// Longer than anybody waits who is served at all.
const TOO_LONG: Duration = Duration::from_secs(10);

/// A client that is served, at one of the addresses.
#[derive(Debug)]
pub(super) struct Client {
    stream: TcpStream,
    /// What it asks, and how the answer begins.
    ask: (&'static [u8], &'static [u8]),
}

impl Client {
    pub(super) fn of_resp(address: SocketAddr) -> Result<Client, String> {
        Ok(Client { stream: connect(address)?, ask: (b"PING\r\n", b"+PONG\r\n") })
    }

    pub(super) fn of_http(address: SocketAddr) -> Result<Client, String> {
        Ok(Client {
            stream: connect(address)?,
            ask: (b"GET /livez HTTP/1.1\r\nhost: here\r\n\r\n", b"HTTP/1.1 200 OK\r\n"),
        })
    }

    /// Asks something, and waits for the answer.
    pub(super) fn ask(&mut self) -> Result<(), String> {
        let (ask, answer) = self.ask;
        let mut reply = vec![0; answer.len()];
        let asked = self.stream.write_all(ask).and_then(|()| self.stream.read_exact(&mut reply));
        match asked {
            Ok(()) if reply == answer => Ok(()),
            Ok(()) => Err(format!("got {}", reply.escape_ascii())),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Many who are there and say nothing.
#[derive(Debug)]
pub(super) struct Storm(Vec<TcpStream>);

impl Storm {
    /// So many, at these doors by turns.
    pub(super) fn of(clients: u64, doors: &[SocketAddr]) -> Result<Storm, String> {
        let doors = doors.iter().cycle().take(clients as usize);
        doors.map(|door| connect(*door)).collect::<Result<_, _>>().map(Storm)
    }

    pub(super) fn leave(self) {
        drop(self.0);
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    let connected = TcpStream::connect_timeout(&address, TOO_LONG).and_then(|stream| {
        stream.set_read_timeout(Some(TOO_LONG))?;
        stream.set_write_timeout(Some(TOO_LONG))?;
        Ok(stream)
    });
    connected.map_err(|error| format!("{address}: {error}"))
}

/// A server that is killed when it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) process: Process,
    pub(super) resp: SocketAddr,
    pub(super) http: SocketAddr,
}

impl Server {
    /// Starts one on free ports, which may have so many descriptors.
    pub(super) fn start(descriptors: u64, complaints: Complaints) -> Result<Server, String> {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={descriptors}")).arg(beside("tidegate", "tidegate-server")?);
        command.args(["serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--json"]);
        let server = harness::Server::start(&mut command, complaints)?;
        let (resp, http) = (server.address("resp")?, server.address("http")?);
        Ok(Server { process: server.process, resp, http })
    }

    pub(super) fn id(&self) -> String {
        format!("process {}", self.process.pid())
    }

    pub(super) fn is_running(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// How many descriptors it has open.
    pub(super) fn descriptors(&self) -> Result<usize, String> {
        let folder = format!("/proc/{}/fd", self.process.pid());
        fs::read_dir(&folder).map(Iterator::count).map_err(|error| format!("{folder}: {error}"))
    }

    /// The processor time that it has taken so far.
    pub(super) fn processor_time(&self) -> Result<Duration, String> {
        let process = self.process.pid();
        cpu_time_of(process).ok_or_else(|| format!("nothing is known of process {process}"))
    }
}
