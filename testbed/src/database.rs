//! A database server, whichever it is: its folder, its port, its processes.
//!
//! It keeps its port and its data over restarts, so that a killed one has to recover what it had committed.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use harness::Signal;

use crate::family::{self, Member};
use crate::template::Account;
use harness::Folder;
use harness::Port;
use harness::Process;
use harness::until;

/// How long a server may take to start, with what it has to recover.
const START: Duration = Duration::from_secs(60);

/// How many connections come in, per server.
pub(crate) const CONNECTIONS: u32 = 200;

/// The folder of its data, inside its folder.
pub(crate) const DATA: &str = "data";

/// The file of its configuration, inside its folder.
pub(crate) const CONFIGURATION: &str = "server.conf";

/// A real database server in a folder of its own.
#[derive(Debug)]
pub struct Database {
    name: &'static str,
    url: String,
    server: Program,
    /// Its last argument, which is not among these, is a statement.
    client: Program,
    place: Place,
    /// Nothing while it is killed.
    process: Mutex<Option<Process>>,
}

impl Database {
    /// Starts one, and waits until it answers.
    pub(crate) fn start(name: &'static str, url: String, programs: Programs, place: Place) -> Database {
        let Programs { server, client } = programs;
        let database = Database { name, url, server, client, place, process: Mutex::new(None) };
        database.restart();
        database
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.place.port.address()
    }

    /// The address as clients write it, with the user and the database `shop`.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The number of its first process, if it is alive.
    pub fn pid(&self) -> Option<u32> {
        self.process().as_ref().map(Process::pid)
    }

    /// Whether it was started and has not ended since; one that is stopped counts.
    pub fn is_alive(&self) -> bool {
        self.process().as_mut().is_some_and(|process| process.ended().is_none())
    }

    /// Ends all its processes at once, as `kill -9` does, and waits until they are gone; dead ones stay dead.
    pub fn kill(&self) {
        let mut process = self.process();
        let children = process.as_mut().map(freeze).unwrap_or_default();
        children.iter().for_each(|child| child.signal(Signal::KILL));
        drop(process.take());
        children.iter().for_each(Member::wait);
    }

    /// Stops all its processes without their noticing, by SIGSTOP: its port still accepts connections, without
    /// replies.
    pub fn stop(&self) {
        if let Some(process) = self.process().as_mut() {
            freeze(process).iter().for_each(|child| child.signal(Signal::STOP));
        }
    }

    /// Lets them go on, by SIGCONT.
    pub fn resume(&self) {
        if let Some(process) = self.process().as_mut() {
            family::children(process.pid()).iter().for_each(|child| child.signal(Signal::CONT));
            process.signal(Signal::CONT);
        }
    }

    /// Starts it on the same port with the same data; kills it before, if it still lives.
    pub fn restart(&self) {
        self.kill();
        let mut command = self.server.command(self.place.folder.path());
        *self.process() = Some(Process::with_log(&mut command, &self.place.folder.file("log")));
        self.wait_until_ready();
    }

    /// Waits until it answers and has recovered what it has on disk.
    pub fn wait_until_ready(&self) {
        until(&format!("{} at {}", self.name, self.address()), START, || {
            if !self.is_alive() {
                panic!("{} at {}: it ended: {}", self.name, self.address(), self.log());
            }
            self.try_query("SELECT 1").is_ok_and(|answer| answer == "1").then_some(())
        });
    }

    /// What a statement gives, a line per row with tabs between the columns; a refusal panics.
    pub fn query(&self, statement: &str) -> String {
        let answer = self.try_query(statement);
        answer.unwrap_or_else(|refusal| {
            panic!("{statement:?} to {} at {}: {refusal}", self.name, self.address())
        })
    }

    /// The same on a connection of its own, with two seconds of max wait for connecting; or why there is no answer.
    pub fn try_query(&self, statement: &str) -> Result<String, String> {
        let output = self.client(statement).output();
        let Output { status, stdout, stderr } = output.map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
        if status.success() { Ok(text(&stdout)) } else { Err(text(&stderr)) }
    }

    /// Its own client with a statement, to be run beside the test.
    pub fn client(&self, statement: &str) -> Command {
        let mut command = self.client.command(self.place.folder.path());
        command.arg(statement);
        command
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.place.folder.file("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.place.folder
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Stops the first process, which alone starts others, and gives those that it has started.
fn freeze(process: &mut Process) -> Vec<Member> {
    process.signal(Signal::STOP);
    family::wait_until_stopped(process.pid());
    family::children(process.pid())
}

/// Where a server is.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: Folder,
    pub(crate) port: Port,
}

/// The server and the one who asks it.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) server: Program,
    pub(crate) client: Program,
}

/// A program with its arguments, and whom it runs as if not as us.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
    account: Option<Account>,
}

impl Program {
    pub(crate) fn new(path: PathBuf, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Program {
        Program { path, arguments: arguments.into_iter().map(Into::into).collect(), account: None }
    }

    pub(crate) fn account(self, account: Option<Account>) -> Program {
        Program { account, ..self }
    }

    /// It, in a folder that it may enter.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).current_dir(folder);
        if let Some(account) = self.account {
            account.run(&mut command);
        }
        command
    }
}
