//! Calls an example as its clients do.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use testbed::Port;

use super::example::Example;
use super::place::state;
use crate::process::Process;

/// The timeout of everything that a test waits for. No verdict depends on it.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

/// The time in which one unit of the limit refills.
pub(super) const REFILL: Duration = Duration::from_secs(12);

/// What an example replies to a client.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    fields: Vec<(String, String)>,
    body: String,
}

impl Reply {
    /// Parses the lines after the status: header fields, then the body.
    fn new(status: &str, rest: &str) -> Reply {
        let (head, body) = rest.split_once("\n\n").unwrap_or((rest, ""));
        let fields = head.lines().filter_map(|line| line.split_once(": "));
        let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let status = status.parse().unwrap_or_else(|_| panic!("{status:?} is no status: {rest}"));
        Reply { status, fields, body: body.to_owned() }
    }

    /// Returns the value of a header field.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(of, _)| of == name).map(|(_, value)| &**value)
    }

    /// Returns true if the request has reached the service.
    pub(super) fn is_served(&self) -> bool {
        // The body may be in chunks.
        self.body.lines().any(|line| line == "hello")
    }

    /// Returns true if the server has counted the request.
    pub(super) fn is_counted(&self) -> bool {
        self.field("ratelimit").is_some()
    }
}

/// An example with its settings: a running service, or a script that is run for each request.
pub(super) struct Caller {
    example: &'static Example,
    folder: PathBuf,
    variables: Vec<(&'static str, String)>,
    /// The service, which is killed with this value, and its port.
    service: Option<(Process, Port)>,
}

impl Caller {
    /// Starts an example. A service then accepts connections.
    pub(super) fn start(
        example: &'static Example,
        folder: &Path,
        variables: Vec<(&'static str, String)>,
    ) -> Caller {
        let mut caller = Caller { example, folder: folder.to_owned(), variables, service: None };
        if !example.is_script() {
            let port = Port::free();
            let mut command = example.command(folder, "");
            command.envs(caller.variables.clone()).env("PORT", port.number().to_string());
            let process = Process::start(&mut command);
            let until = testbed::now() + TIMEOUT;
            while TcpStream::connect(port.address()).is_err() {
                if has_ended(&process) || testbed::now() > until {
                    process.signal(rustix::process::Signal::KILL);
                    panic!("{} does not listen: {:?}", example.name, process.end());
                }
                testbed::pause(Duration::from_millis(10));
            }
            caller.service = Some((process, port));
        }
        caller
    }

    /// Returns the address of a service.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.service.as_ref().map(|(_, port)| port.address())
    }

    /// Sends a request of a client.
    pub(super) fn ask(&self, client: u8) -> Reply {
        self.ask_for(client, "/", "")
    }

    /// Sends a request of a client for a path, with further header fields. Scripts have neither.
    pub(super) fn ask_for(&self, client: u8, path: &str, fields: &str) -> Reply {
        match &self.service {
            Some((_, port)) => get(Ipv4Addr::new(127, 0, 0, client), port.address(), path, fields),
            None => self.run(client),
        }
    }

    /// Runs a script. Its exit code has to be that of its status.
    fn run(&self, client: u8) -> Reply {
        let mut command = self.example.command(&self.folder, &format!("client{client}"));
        let ended = Process::run(command.envs(self.variables.clone()), b"");
        let (status, fields) = ended.out.split_once('\n').unwrap_or(("500", ""));
        let mut reply = Reply::new(status, fields);
        let code = match reply.status {
            200 => 0,
            500 => 1,
            _ => 3,
        };
        assert_eq!(ended.code, Some(code), "{ended:?}");
        if code == 0 {
            // The command behind a script's `&&` would run.
            "hello".clone_into(&mut reply.body);
        }
        reply
    }
}

/// Returns true if a process has ended and was not waited for.
fn has_ended(process: &Process) -> bool {
    state(&Path::new("/proc").join(process.id().to_string())).is_none_or(|state| state == 'Z')
}

/// Sends a request from an address of loopback.
fn get(from: Ipv4Addr, to: SocketAddr, path: &str, fields: &str) -> Reply {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket can be had");
    bind(&socket, &SocketAddr::from((from, 0))).expect("all of 127.0.0.0/8 is loopback");
    connect(&socket, &to).expect("the service listens");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT)).expect("a socket option can be set");
    let request = format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the service reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("the service replies");
    let reply = reply.replace("\r\n", "\n");
    let (first, rest) = reply.split_once('\n').unwrap_or_default();
    Reply::new(first.split(' ').nth(1).unwrap_or_default(), rest)
}
