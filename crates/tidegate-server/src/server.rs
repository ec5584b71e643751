//! The running server: its listeners, its workers, and its shutdown.
//!
//! ```text
//!   Server::start: bind --> store --> engine --> workers --> accept loops, watchers
//!   Server::stop:  not ready --> stop accepting --> drain --> join --> flush
//! ```
//!
//! The listeners are bound before anything else, so that an address in use is reported without side effects. With
//! port 0 the system picks a free port; [`Server::resp`] and [`Server::http`] return it.

use std::error::Error;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{fmt, io};

use tidegate::Zone;
use tidegate_redis::{OpenError, Status};
use tidegate_rules::UnsupportedPolicy;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::accept;
use crate::engine::{self, Engine, NotBuilt};
use crate::files;
use crate::front::Front;
use crate::outage;
use crate::overrides;
use crate::reload::{self, Every, Pace, ReportListener};
use crate::rules::{Occasion, Reloaded};
use crate::settings::{Settings, Source};
use crate::worker::Worker;

/// The backlog of a listener: the maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 4096;
/// The period between two clock updates of the zone's file.
const KEEP_TIME_EVERY: Duration = Duration::from_secs(1);

/// A running server. [`Server::stop`] shuts it down in order. Dropping it ends the workers without waiting for them.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::TcpStream;
/// use tidegate::Zone;
/// use tidegate_server::{Server, Settings};
///
/// let any_port = Some("127.0.0.1:0".parse()?);
/// let server = Server::start(Settings { resp: any_port, http: None, ..Settings::default() }, Zone::new(1 << 20))?;
///
/// let mut client = TcpStream::connect(server.resp().expect("it speaks RESP"))?;
/// client.write_all(b"CL.THROTTLE user123 15 30 60\r\n")?;
/// let mut reply = [0; 27];
/// client.read_exact(&mut reply)?;
/// assert_eq!(&reply, b"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n");
/// server.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Several servers can run in one process. Each has its own threads.
#[doc(alias = "rate limiter")]
#[doc(alias = "redis-cell")]
#[doc(alias = "CL.THROTTLE")]
#[derive(Debug)]
pub struct Server {
    /// The bound addresses, with the ports that the system picked.
    addresses: Vec<(Front, SocketAddr)>,
    /// The state that all workers share.
    engine: Arc<Engine>,
    /// Set to true to stop. Connections and tasks watch it.
    stop: watch::Sender<bool>,
    /// The worker threads; there is at least one.
    workers: Vec<Worker>,
}

impl Server {
    /// Binds the ports and starts the workers. States are in `zone`. With a shared store, `zone` is the fallback while
    /// the store is down.
    ///
    /// Returns a [`StartError`] if a port cannot be bound, a token is missing, the rules do not fit, or a thread cannot
    /// start.
    ///
    /// Blocks for a moment. A remote store is opened, and awaited for at most half a second, so that its overrides are in
    /// force. The server accepts connections when this returns.
    pub fn start(settings: Settings, zone: Zone) -> Result<Server, StartError> {
        let listeners = bind(&settings)?;
        let addresses = listeners.iter().map(|(front, _, address)| (*front, *address)).collect();
        let redis = settings.store.shared.as_ref().map(engine::open).transpose();
        let redis = redis.map_err(StartError::Store)?;
        let engine = Engine::new(settings, zone, redis).map_err(|error| match error {
            NotBuilt::Unfit(error) => StartError::Unfit(error),
            NotBuilt::NotKept(why) => StartError::Overrides(why.0),
        })?;
        let (stop, stopped) = watch::channel(false);
        let workers: io::Result<Vec<_>> = (0..engine.settings().threads.get())
            .map(|number| Worker::start(number, engine.clone(), stopped.clone()))
            .collect();
        let workers = workers.map_err(StartError::Threads)?;
        let (looked, first_look) = mpsc::channel();
        let own = engine.clone();
        workers[0].spawn(async move {
            overrides::first_look(&own).await;
            // The caller waits for it.
            let _ = looked.send(());
            overrides::watch(own, Every).await;
        });
        // The first request meets the overrides that are kept. A worker that ends early drops the channel.
        let _ = first_look.recv();
        let handles: Vec<_> = workers.iter().map(|worker| worker.handle.clone()).collect();
        for (front, listener, _) in listeners {
            let (handles, engine) = (handles.clone(), engine.clone());
            workers[0].spawn(async move {
                if let Ok(listener) = TcpListener::from_std(listener) {
                    accept::run(front, listener, handles, engine).await;
                }
            });
        }
        workers[0].spawn(keep_time(engine.clone()));
        Ok(Server { addresses, engine, stop, workers })
    }

    /// Enables reloads: a watcher reads the rules from `source` whenever a look finds that the file has changed.
    ///
    /// `text` is the text that the rules in force were read from, if they came from a file. Called at most once.
    pub(crate) fn read_rules_from(
        &self,
        source: Source,
        text: Option<String>,
        tell: ReportListener,
        pace: impl Pace,
    ) {
        self.engine.rules().come_from(source, text, tell);
        self.workers[0].spawn(reload::watch(self.engine.clone(), pace));
    }

    /// Waits for the first connection attempt and returns the status of the remote store, if there is one. Reports
    /// later changes to `tell`.
    ///
    /// Blocks for at most half a second. Returns `None` if the store is in memory.
    pub(crate) fn watch_store(&self, tell: impl Fn(&str) + Send + Sync + 'static) -> Option<Status> {
        let store = self.engine.redis()?.clone();
        let engine = self.engine.clone();
        let (looked, first) = mpsc::channel();
        self.workers[0].spawn(async move {
            let status = outage::first_look(&store).await;
            let was_available = status.is_available;
            // The caller waits for it.
            let _ = looked.send(status);
            outage::watch(&store, &engine, was_available, tell).await;
        });
        first.recv().ok()
    }

    /// Reloads the rules now, and puts them in force if they are valid. Resolves to `None` if no thread can be created.
    pub(crate) fn reload(&self) -> impl Future<Output = Option<Reloaded>> + use<> {
        let engine = self.engine.clone();
        reload::aside(move || engine.rules().reload(engine.settings(), Occasion::Asked))
    }

    /// Returns a warning for each named zone whose states were lost in a power failure, or whose state file was
    /// missing.
    pub(crate) fn lost_states(&self) -> Vec<String> {
        self.engine.gate().zones().iter().filter_map(|(_, zone)| files::lost(zone)).collect()
    }

    /// Returns the address of the RESP port, if RESP is on.
    ///
    /// It differs from the address in the settings if that has port 0.
    pub fn resp(&self) -> Option<SocketAddr> {
        self.address(Front::Resp)
    }

    /// Returns the address of the HTTP port, if HTTP is on.
    ///
    /// It differs from the address in the settings if that has port 0.
    pub fn http(&self) -> Option<SocketAddr> {
        self.address(Front::Http)
    }

    #[cfg(test)]
    pub(crate) fn engine(&self) -> Arc<Engine> {
        self.engine.clone()
    }

    /// Returns the bound address of a front.
    fn address(&self, front: Front) -> Option<SocketAddr> {
        self.addresses.iter().find(|(of, _)| *of == front).map(|(_, address)| *address)
    }

    /// Shuts the server down: reports not ready, stops accepting, drains requests in flight and flushes the zones.
    ///
    /// Blocks until all workers have ended. They wait for open connections for at most the shutdown timeout.
    ///
    /// Requests that have begun are answered, also those that wait for a remote store. After the shutdown timeout
    /// the remaining connections are dropped.
    pub fn stop(self) {
        self.engine.stop();
        self.stop.send_replace(true);
        self.workers.into_iter().for_each(Worker::join);
        let named = self.engine.gate().zones();
        for zone in [self.engine.zone()].into_iter().chain(named.iter().map(|(_, zone)| zone)) {
            // All decisions are in the mapped files already. If this fails, the kernel writes them later.
            let _ = zone.flush();
        }
    }
}

/// Updates the zone's file when the wall clock is set while no requests arrive.
async fn keep_time(engine: Arc<Engine>) {
    loop {
        sleep(KEEP_TIME_EVERY).await;
        engine.zone().keep_time();
    }
}

/// A front, its listener, and the address that the listener got.
type Bound = (Front, StdListener, SocketAddr);

/// Binds the ports of all fronts that are on. Without a token only loopback addresses are allowed.
fn bind(settings: &Settings) -> Result<Vec<Bound>, StartError> {
    let wanted = [(Front::Resp, settings.resp), (Front::Http, settings.http)];
    let wanted: Vec<_> = wanted.into_iter().filter_map(|(front, address)| Some((front, address?))).collect();
    if wanted.is_empty() {
        return Err(StartError::NoPort);
    }
    for (front, address) in &wanted {
        if settings.token.is_none() && !address.ip().is_loopback() {
            return Err(StartError::Open { front: *front, address: *address });
        }
    }
    wanted.into_iter().map(|(front, address)| listen(front, address)).collect()
}

/// Binds one port, nonblocking and with a long backlog.
fn listen(front: Front, address: SocketAddr) -> Result<Bound, StartError> {
    let listening = || {
        let listener = StdListener::bind(address)?;
        // A second listen call only enlarges the backlog of the standard library.
        rustix::net::listen(&listener, BACKLOG)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((front, listener, address))
    };
    listening().map_err(|source| StartError::Bind { front, address, source })
}

/// The reason why a server did not start. Displays the fault and a remedy.
///
/// [`std::error::Error::source`] returns the error of the operating system, if there is one.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// Both fronts are turned off.
    NoPort,
    /// The address is reachable from other machines and there is no token. Any client could then spend every quota.
    Open {
        /// The front.
        front: Front,
        /// The address of the front.
        address: SocketAddr,
    },
    /// The operating system does not allow the front to listen on this address.
    Bind {
        /// The front.
        front: Front,
        /// The address of the front.
        address: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The store does not support the rules: no memory for a zone, unusable files, or an unsupported limit.
    Unfit(UnsupportedPolicy),
    /// The file of overrides is broken or not to be read, or the audit log is not to be written.
    Overrides(String),
    /// The settings of the shared store are invalid.
    Store(OpenError),
    /// A worker thread could not be started.
    Threads(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NoPort => out.write_str("no port to listen on; give --resp or --http an address"),
            StartError::Open { front, address } => write!(
                out,
                "{front} on {address} would be open to other machines without a token; \
                 set TIDEGATE_TOKEN or --token-file, or listen on 127.0.0.1"
            ),
            StartError::Bind { front, address, source } => {
                write!(out, "{front}: ")?;
                cannot_listen(out, *front, *address, source.kind())
            }
            StartError::Unfit(error) => error.fmt(out),
            StartError::Overrides(why) => out.write_str(why),
            StartError::Store(error) => error.fmt(out),
            StartError::Threads(_) => out.write_str("cannot start a thread; try --threads 1"),
        }
    }
}

/// Writes the fault and a remedy. The proposed flag has an address that is likely to work.
fn cannot_listen(
    out: &mut fmt::Formatter<'_>,
    front: Front,
    address: SocketAddr,
    why: io::ErrorKind,
) -> fmt::Result {
    let with_port = |port| SocketAddr::new(address.ip(), port);
    match why {
        io::ErrorKind::AddrInUse => {
            let next = with_port(address.port().checked_add(1).unwrap_or(0));
            write!(
                out,
                "{address}: address already in use; stop the process that uses it, or choose another port: --{front} {next}"
            )
        }
        io::ErrorKind::PermissionDenied => {
            let higher = with_port(address.port().saturating_add(8000));
            write!(out, "this user may not listen on {address}; choose a port above 1023: --{front} {higher}")
        }
        _ => write!(
            out,
            "cannot listen on {address}; choose an address of this machine: --{front} 127.0.0.1:{}",
            address.port()
        ),
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StartError::Bind { source, .. } | StartError::Threads(source) => Some(source),
            StartError::Unfit(error) => error.source(),
            StartError::NoPort
            | StartError::Open { .. }
            | StartError::Overrides(_)
            | StartError::Store(_) => None,
        }
    }
}
