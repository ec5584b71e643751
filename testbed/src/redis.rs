//! One server, on a port that it keeps over restarts.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use harness::Signal;

use crate::certificates::Certificates;
use crate::family;
use crate::flavour::Flavour;
use crate::resp::{Connection, Reply};
use crate::settings::{OURSELVES, Settings};
use harness::Folder;
use harness::Port;
use harness::Process;
use harness::until;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(30);

/// How long a server may take to answer a look at it.
const LOOK: Duration = Duration::from_secs(2);

/// The file with its configuration, which it may write again by itself.
const CONFIGURATION: &str = "server.conf";

/// A real server in a folder of its own.
#[derive(Debug)]
pub struct Redis {
    settings: Settings,
    port: Port,
    tls: Option<(Port, Certificates)>,
    /// The cluster's bus, if there is one.
    _bus: Option<Port>,
    is_sentinel: bool,
    folder: Folder,
    /// Nothing while it is killed.
    process: Mutex<Option<Process>>,
}

impl Redis {
    /// Starts one with nothing said, and waits until it answers.
    pub fn start(flavour: Flavour) -> Redis {
        Redis::with(&Settings::new(flavour))
    }

    /// Starts one with these settings, and waits until it answers.
    pub fn with(settings: &Settings) -> Redis {
        Redis::launch(settings, &settings.text(), Place { port: Port::free(), bus: None, is_sentinel: false })
    }

    /// Starts one in a place, with this text after the options of every server.
    pub(crate) fn launch(settings: &Settings, text: &str, place: Place) -> Redis {
        let redis = Redis {
            settings: settings.clone(),
            port: place.port,
            tls: settings.is_tls.then(|| (Port::free(), Certificates::new())),
            _bus: place.bus,
            is_sentinel: place.is_sentinel,
            folder: Folder::new("redis"),
            process: Mutex::new(None),
        };
        redis.folder.write(CONFIGURATION, &format!("{}{text}", redis.beginning()));
        redis.restart();
        redis
    }

    /// Which program it is.
    pub fn flavour(&self) -> Flavour {
        self.settings.flavour
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The address as clients write it.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// The address for TLS, if it is enabled.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls.as_ref().map(|(port, _)| port.address())
    }

    /// What it shows to those who come by TLS.
    pub fn certificates(&self) -> Option<&Certificates> {
        self.tls.as_ref().map(|(_, certificates)| certificates)
    }

    /// The number of its process, if it is alive.
    pub fn pid(&self) -> Option<u32> {
        self.process().as_ref().map(Process::pid)
    }

    /// Ends it at once, as `kill -9` does, and waits until it is gone; dead ones stay dead.
    pub fn kill(&self) {
        drop(self.process().take());
    }

    /// Whether it was started and not killed since; one that is stopped counts.
    pub fn is_alive(&self) -> bool {
        self.process().as_mut().is_some_and(|process| process.ended().is_none())
    }

    /// Stops it without its noticing, by SIGSTOP, and waits until it is: its port still accepts
    /// connections, without replies.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        if let Some(pid) = self.pid() {
            family::wait_until_stopped(pid);
        }
    }

    /// Lets it go on, by SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Starts it on the same port, with its last settings; kills it before, if it still lives.
    pub fn restart(&self) {
        self.kill();
        let program = self.settings.flavour.program().unwrap_or_else(|missing| panic!("{missing}"));
        let mut command = Command::new(program);
        command.arg(self.folder.file(CONFIGURATION)).current_dir(self.folder.path());
        if self.is_sentinel {
            command.arg("--sentinel");
        }
        *self.process() = Some(Process::with_log(&mut command, &self.folder.file("log")));
        self.wait_until_ready();
    }

    /// Waits until it answers and has read what it has on disk or gets from its primary.
    pub fn wait_until_ready(&self) {
        until(&format!("{} at {}", self.settings.flavour, self.address()), START, || {
            if !self.is_alive() {
                panic!("{} at {}: it ended: {}", self.settings.flavour, self.address(), self.log());
            }
            let reply = self.try_command(&["PING"]).ok()?;
            (reply == Reply::Simple("PONG".to_owned())).then_some(())
        });
    }

    /// Asks it something, and gives the text of the reply; a refusal panics.
    pub fn command(&self, words: &[&str]) -> String {
        match self.try_command(words) {
            Ok(Reply::Error(error)) => panic!("{words:?} to {}: {error}", self.address()),
            Ok(reply) => reply.text(),
            Err(error) => panic!("{words:?} to {}: {error}", self.address()),
        }
    }

    /// Asks it something on a connection of its own, with two seconds of max wait; a refusal is a reply.
    pub fn try_command(&self, words: &[&str]) -> io::Result<Reply> {
        self.connect(LOOK)?.call(words)
    }

    /// A connection on which everything is allowed.
    pub fn connection(&self) -> Connection {
        let connection = self.connect(Duration::from_secs(10));
        connection.unwrap_or_else(|error| panic!("connection to {}: {error}", self.address()))
    }

    /// How many clients are connected, without the one that asks.
    pub fn clients(&self) -> usize {
        self.information("CLIENTS", "connected_clients") - 1
    }

    /// A whole number from `INFO`.
    pub fn information(&self, section: &str, name: &str) -> usize {
        let text = self.command(&["INFO", section]);
        let number = field(&text, name).and_then(|number| number.parse().ok());
        number.unwrap_or_else(|| panic!("INFO {section} of {}: no number {name} in {text}", self.address()))
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.folder.file("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Says something else in its configuration from the next start on: one line in place of all of this name.
    pub(crate) fn rewrite(&self, name: &str, line: &str) {
        let path = self.folder.file(CONFIGURATION);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let others = text.lines().filter(|line| line.split_whitespace().next() != Some(name));
        let text: String = others.chain([line]).map(|line| format!("{line}\n")).collect();
        self.folder.write(CONFIGURATION, &text);
    }

    fn connect(&self, timeout: Duration) -> io::Result<Connection> {
        let mut connection = Connection::with_timeout(self.address(), timeout)?;
        if self.settings.has_password() {
            let [name, password] = OURSELVES;
            connection.call(&["AUTH", name, password])?;
        }
        Ok(connection)
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = self.process().as_mut() {
            process.signal(signal);
        }
    }

    /// The options of every server.
    fn beginning(&self) -> String {
        let folder = self.folder.path().display();
        let port = self.port.number();
        let mut text =
            format!("port {port}\nbind 127.0.0.1\nprotected-mode no\ndaemonize no\ndir {folder}\n");
        if let Some((port, certificates)) = &self.tls {
            let (certificate, key) = certificates.server();
            let authority = certificates.authority();
            let (certificate, key, authority) = (certificate.display(), key.display(), authority.display());
            text += &format!("tls-port {}\ntls-auth-clients optional\n", port.number());
            text +=
                &format!("tls-cert-file {certificate}\ntls-key-file {key}\ntls-ca-cert-file {authority}\n");
        }
        text
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a server is to be, and as what.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) port: Port,
    pub(crate) bus: Option<Port>,
    pub(crate) is_sentinel: bool,
}

/// The value of a field in the text of `INFO`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}
