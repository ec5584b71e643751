//! Servers in processes of their own, on one core, while the load is on another.
//!
//! A process inherits the cores of the thread that starts it, so nothing has to be moved afterwards.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use harness::{Complaints, Port, Process, Signal, cpu_time_of, in_path, once_more, pause, resident_of, send};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use testbed::{Connection, Flavour, Redis, Reply};

use crate::building::{build, cargo, target_folder};

/// How long a server may take to start.
const START_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A promise like that of `CL.THROTTLE`, as a user of Redis would write it.
const SCRIPT: &str = include_str!("gcra.lua");

const THROTTLECRAB: &str = "throttlecrab-server";
const THROTTLECRAB_VERSION: &str = "0.4.40";

/// The cores of the server and of the load; read before this thread stays on one.
static CORES: LazyLock<Option<(usize, usize)>> = LazyLock::new(|| {
    let set = sched_getaffinity(None).ok()?;
    let mut usable = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
    usable.next().zip(usable.next())
});

/// A running server; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// The address of its RESP front.
    pub(crate) resp: SocketAddr,
    /// The address of its HTTP front, if it has one.
    pub(crate) http: Option<SocketAddr>,
    pub(crate) pid: u32,
    _running: Running,
}

#[expect(dead_code, reason = "each is kept alive, and ends when it is dropped")]
#[derive(Debug)]
enum Running {
    Process(Process),
    Server(harness::Server),
    Redis(Box<Redis>),
}

impl Server {
    /// Starts a Redis or Valkey without persistence.
    pub(crate) fn redis(flavour: Flavour) -> Result<Server, String> {
        flavour.program().map_err(|missing| missing.to_string())?;
        let redis = on_core_of_server(|| Redis::start(flavour));
        let pid = redis.pid().ok_or("it has ended")?;
        Ok(Server { resp: redis.address(), http: None, pid, _running: Running::Redis(Box::new(redis)) })
    }

    /// Starts this program once more as a server that says its address on its first line.
    pub(crate) fn ourselves(arguments: &[&str]) -> Result<Server, String> {
        let mut command = once_more()?;
        let server = on_core_of_server(|| harness::Server::start(command.args(arguments), Complaints::Read))?;
        let address = server.address("http")?;
        let pid = server.process.pid();
        Ok(Server { resp: address, http: Some(address), pid, _running: Running::Server(server) })
    }

    /// Starts this build of our own server with one thread and this configuration.
    pub(crate) fn tidegate(program: &Path, config: Option<&str>) -> Result<Server, String> {
        let mut command = Command::new(program);
        command.args(["serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--threads", "1", "--json"]);
        // A configuration in the current folder is not to be read.
        command.current_dir(program.parent().unwrap_or(Path::new(".")));
        if let Some(config) = config {
            let file = program.with_file_name("bench.toml");
            fs::write(&file, config).map_err(|error| format!("{}: {error}", file.display()))?;
            command.arg("--config").arg(file);
        }
        let server = on_core_of_server(|| harness::Server::start(&mut command, Complaints::Read))?;
        let (resp, http, pid) = (server.address("resp")?, server.address("http")?, server.process.pid());
        Ok(Server { resp, http: Some(http), pid, _running: Running::Server(server) })
    }

    /// Starts a throttlecrab-server as it comes; it does not set `TCP_NODELAY`.
    fn throttlecrab(program: &Path) -> Result<Server, String> {
        let [resp, http] = [(); 2].map(|()| Port::free().address());
        let mut command = Command::new(program);
        command.args(["--redis", "--redis-host", "127.0.0.1", "--redis-port", &resp.port().to_string()]);
        command.args(["--http", "--http-host", "127.0.0.1", "--http-port", &http.port().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut process = on_core_of_server(|| Process::start(&mut command))?;
        for address in [resp, http] {
            let mut looks = START_WITHIN.div_duration_f64(LOOK_EVERY) as u32;
            while TcpStream::connect_timeout(&address, LOOK_EVERY).is_err() {
                if let Some(status) = process.ended() {
                    return Err(format!("it ended with {status} before it listened on {address}"));
                }
                looks = looks
                    .checked_sub(1)
                    .ok_or_else(|| format!("it does not listen on {address} after {START_WITHIN:?}"))?;
                pause(LOOK_EVERY);
            }
        }
        Ok(Server { resp, http: Some(http), pid: process.pid(), _running: Running::Process(process) })
    }

    /// Hands the script to a Redis. Returns the name under which it is called.
    pub(crate) fn load_script(&self) -> Result<String, String> {
        self.load(SCRIPT)
    }

    /// Hands any script to a Redis.
    pub(crate) fn load(&self, script: &str) -> Result<String, String> {
        self.wake()?;
        match Connection::open(self.resp)
            .and_then(|mut connection| connection.call(&["SCRIPT", "LOAD", script]))
        {
            Ok(Reply::Bulk(name)) => Ok(String::from_utf8_lossy(&name).into_owned()),
            other => Err(format!("the script is not loaded: {other:?}")),
        }
    }

    /// Returns the time that its threads have run so far.
    pub(crate) fn cpu_time(&self) -> Result<Duration, String> {
        cpu_time_of(self.pid).ok_or_else(|| "the server has ended".to_owned())
    }

    /// Returns its resident bytes.
    pub(crate) fn resident(&self) -> Result<u64, String> {
        resident_of(self.pid)
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
        send(self.pid, signal).then_some(()).ok_or_else(|| format!("no {signal:?}: the server has ended"))
    }
}

/// The programs that are compared: ours and throttlecrab's are built, Redis is expected to be installed.
#[derive(Debug)]
pub(crate) struct Programs {
    tidegate: Option<PathBuf>,
    throttlecrab: Option<PathBuf>,
}

impl Programs {
    /// Builds and looks for all; one that is missing is left out of the tables, and its goals are missed.
    pub(crate) fn prepare() -> Programs {
        Programs { tidegate: or_complain(build_tidegate()), throttlecrab: or_complain(build_throttlecrab()) }
    }

    /// Starts our own server with its default zone.
    pub(crate) fn tidegate(&self) -> Option<Server> {
        self.tidegate.as_deref().and_then(|program| or_complain(Server::tidegate(program, None)))
    }

    /// Starts our own server with its default zone and these rules.
    pub(crate) fn tidegate_with_rules(&self, rules: &str) -> Option<Server> {
        self.tidegate.as_deref().and_then(|program| or_complain(Server::tidegate(program, Some(rules))))
    }

    /// Starts a Redis.
    pub(crate) fn redis(&self) -> Option<Server> {
        or_complain(Server::redis(Flavour::Redis7))
    }

    /// Starts a throttlecrab-server.
    pub(crate) fn throttlecrab(&self) -> Option<Server> {
        self.throttlecrab.as_deref().and_then(|program| or_complain(Server::throttlecrab(program)))
    }
}

fn or_complain<T>(found: Result<T, String>) -> Option<T> {
    found.map_err(|problem| eprintln!("server: left out: {problem}")).ok()
}

/// Builds our own server.
pub(crate) fn build_tidegate() -> Result<PathBuf, String> {
    let target = target_folder()?;
    let mut cargo = cargo(&target);
    cargo.args(["build", "--release", "--locked", "-p", "tidegate-server", "--bin", "tidegate"]);
    build("tidegate", &mut cargo)?;
    Ok(target.join("release/tidegate"))
}

fn build_throttlecrab() -> Result<PathBuf, String> {
    let target = target_folder()?;
    let peers = target.join("peers");
    let program = peers.join("bin").join(THROTTLECRAB);
    if program.is_file() {
        return Ok(program);
    }
    // Without it the build fails half-way, and its build script is not asked again.
    in_path("protoc").ok_or_else(|| {
        format!("{THROTTLECRAB} cannot be built without protoc; on Debian: apt-get install protobuf-compiler")
    })?;
    let mut cargo = cargo(&target);
    cargo
        .args(["install", THROTTLECRAB, "--version", THROTTLECRAB_VERSION, "--locked", "--root"])
        .arg(&peers);
    build(THROTTLECRAB, &mut cargo)?;
    Ok(program)
}

/// Does this on the core of the server, and returns to the core of the load.
fn on_core_of_server<T>(start: impl FnOnce() -> T) -> T {
    let Some((server, load)) = *CORES else { return start() };
    stay_on(server);
    let started = start();
    stay_on(load);
    started
}

fn stay_on(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    if let Err(error) = sched_setaffinity(None, &set) {
        eprintln!("not kept on core {core}: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_started_on_another_core_than_that_of_the_load() {
        let here = || (0..CpuSet::MAX_CPU).find(|core| sched_getaffinity(None).unwrap().is_set(*core));
        // Another thread of the tests is not to be moved.
        let (server, load) = std::thread::spawn(move || (on_core_of_server(here), here())).join().unwrap();
        assert_eq!(CORES.is_some(), server != load);
    }

    #[test]
    fn a_script_is_called_by_forty_digits() {
        let server = Server::redis(Flavour::Redis7).unwrap();
        assert_eq!(server.load_script().unwrap().len(), 40);
        assert!(server.load("not Lua").is_err());
        assert!(server.rest().is_ok() && server.wake().is_ok() && server.resident().unwrap() > 0);
    }
}
