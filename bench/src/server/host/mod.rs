//! A server in a process of its own: how it is started, what it takes, and that it ends.

mod cores;
mod guard;
mod ourselves;
mod programs;
mod redis;
mod throttlecrab;
mod tidegate;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use self::cores::on_core_of_server;
use self::guard::Guard;
pub(super) use self::guard::run as run_guard;
pub(crate) use self::ourselves::start as start_ourselves;
pub(super) use self::programs::Programs;
pub(crate) use self::programs::build_tidegate;
pub(super) use self::redis::load_script;
pub(crate) use self::redis::start as start_redis;
pub(crate) use self::tidegate::start_with as start_tidegate;
use crate::cpu::cpu_time_of;
use crate::process::resident_of;
use crate::stopwatch::{instant, pause};

/// How long a server may take to start.
const START_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// A running server; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Where it speaks RESP.
    pub(crate) resp: SocketAddr,
    /// Where it speaks HTTP; nowhere, in some.
    pub(crate) http: Option<SocketAddr>,
    // Ends first: it is not to kill a process that has the server's number after it.
    _guard: Guard,
    process: Process,
}

/// A process that is killed and waited for when it is dropped.
#[derive(Debug)]
struct Process(Child);

impl Server {
    /// For how long its threads have been running so far.
    pub(crate) fn cpu_time(&self) -> Result<Duration, String> {
        cpu_time_of(self.id()).ok_or_else(|| "the server has ended".to_owned())
    }

    /// What is resident of it, in bytes.
    pub(crate) fn resident(&self) -> Result<usize, String> {
        resident_of(self.id()).ok_or_else(|| "the server has ended".to_owned())
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Does nothing from now on, not even sweep, while others are measured on its core.
    pub(crate) fn rest(&self) -> Result<(), String> {
        self.signal(Signal::STOP)
    }

    /// Goes on after a rest.
    pub(crate) fn wake(&self) -> Result<(), String> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        kill_process(Pid::from_child(&self.process.0), signal)
            .map_err(|error| format!("no {signal:?}: {error}"))
    }
}

impl Process {
    /// Starts a server on its core.
    fn start(command: &mut Command, stdout: Stdio) -> Result<Process, String> {
        command.stdin(Stdio::null()).stdout(stdout);
        let child = on_core_of_server(|| command.spawn());
        child.map(Process).map_err(|error| format!("{}: {error}", command.get_program().display()))
    }

    /// Waits until it listens there.
    fn listens(&mut self, address: SocketAddr) -> Result<(), String> {
        let start = instant();
        while TcpStream::connect_timeout(&address, CONNECT_WITHIN).is_err() {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Err(format!("it ended with {status} before it listened on {address}"));
            }
            if start.elapsed() > START_WITHIN {
                return Err(format!("it does not listen on {address} after {START_WITHIN:?}"));
            }
            pause(LOOK_EVERY);
        }
        Ok(())
    }

    fn served(self, resp: SocketAddr, http: Option<SocketAddr>) -> Result<Server, String> {
        let guard = Guard::watch(&self.0)?;
        Ok(Server { resp, http, _guard: guard, process: self })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address that was free just now, for servers that cannot choose one themselves.
fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    listener.and_then(|listener| listener.local_addr()).map_err(|error| format!("no free port: {error}"))
}
