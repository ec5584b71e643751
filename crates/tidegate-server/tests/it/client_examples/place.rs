//! A server as a process, which a test can kill, and start again on the same ports.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use testbed::{Port, Proxy};

use super::caller::TIMEOUT;
use super::example::{Front, PAGE};
use crate::command::call::Call;
use crate::documents::blocks::blocks;
use crate::process::Process;
use crate::wire::resp;

/// The token of the server.
pub(super) const TOKEN: &str = "open-sesame";

/// A rule that always denies.
const CLOSED: &str = "[[rule]]\nname = 'closed'\nwhen = { path = '/closed' }\ndecision = 'deny'\n";

/// The line of the page that starts the server.
pub(super) const SERVE: &str = "tidegate serve --config tidegate.toml";

/// The addresses of a server, and the server while it runs.
pub(super) struct Place {
    call: Call,
    resp: Port,
    http: Port,
    running: Option<Process>,
}

impl Place {
    /// Creates a place for a server with a token, the rule of the page and one that denies. It does not run yet.
    pub(super) fn new(name: &str) -> Place {
        assert!(PAGE.contains(&format!("\n{SERVE}\n")), "the page does not show how to start the server");
        let rules = blocks(PAGE).find(|block| block.language == "toml").expect("the page has rules");
        let call = Call::from(&format!("client_{name}"))
            .file("tidegate.toml", &format!("{}\n{CLOSED}", rules.body))
            .variable("TIDEGATE_TOKEN", TOKEN);
        Place { call, resp: Port::free(), http: Port::free(), running: None }
    }

    /// Starts the server, without a state.
    pub(super) fn start(&mut self) {
        self.start_with(&[]);
    }

    /// Starts the server with further arguments.
    pub(super) fn start_with(&mut self, further: &[&str]) {
        self.kill();
        let (resp, http) = (self.resp.address().to_string(), self.http.address().to_string());
        let mut arguments: Vec<_> = SERVE.split(' ').skip(1).collect();
        arguments.extend(["--json", "--resp", &resp, "--http", &http]);
        arguments.extend(further);
        self.running = Some(self.call.ready(&arguments).0);
    }

    /// Kills the server with SIGKILL, if it runs.
    pub(super) fn kill(&mut self) {
        self.running = None;
    }

    /// Stops the server, so that it accepts connections and does not reply.
    pub(super) fn hang(&self) {
        self.signal(Signal::STOP);
        let threads = format!("/proc/{}/task", self.process().id());
        // A thread may reply for a moment after the signal was sent.
        let is_stopped = || {
            let mut threads = fs::read_dir(&threads).expect("it runs").flatten();
            threads.all(|thread| state(&thread.path()) == Some('T')).then_some(())
        };
        testbed::until("the server is stopped", TIMEOUT, is_stopped);
    }

    /// Continues the server after [`Place::hang`].
    pub(super) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        self.process().signal(signal);
    }

    fn process(&self) -> &Process {
        self.running.as_ref().expect("it runs")
    }

    /// Starts the server with room for one connection, and takes that connection.
    pub(super) fn fill(&mut self) -> resp::Client {
        self.start_with(&["--max-connections", "1"]);
        let mut only = resp::Client::connect(self.resp.address());
        assert_eq!(only.ask(&["AUTH", TOKEN]), resp::Value::Simple("OK".to_owned()));
        only
    }

    /// Returns the variables with the addresses of the server.
    pub(super) fn addresses(&self) -> [(&'static str, String); 2] {
        [
            ("TIDEGATE_RESP", self.resp.address().to_string()),
            ("TIDEGATE_HTTP", self.http.address().to_string()),
        ]
    }

    /// Starts a proxy in front of the server, and returns the variable with its address.
    pub(super) fn proxy(&self, front: Front) -> (Proxy, (&'static str, String)) {
        let (name, port) = match front {
            Front::Resp => ("TIDEGATE_RESP", &self.resp),
            Front::Http => ("TIDEGATE_HTTP", &self.http),
        };
        let proxy = Proxy::start(port.address());
        let address = proxy.address().to_string();
        (proxy, (name, address))
    }
}

/// Returns the state of a process or a thread, by its folder in `/proc`; `None` if it is gone.
pub(super) fn state(folder: &Path) -> Option<char> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // The name of a program may have any characters.
    stat.rsplit(')').next()?.trim_start().chars().next()
}
