//! The test harness: a server in this process with a manual clock, and plain sockets to it.

pub(crate) mod http;
pub(crate) mod in_time;
pub(crate) mod resp;

use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use conformance::clock::TickingClock;
use tidegate::{ManualClock, Zone};
use tidegate_rules::Policy;
use tidegate_server::settings::{Bounds, Token};
use tidegate_server::{Server, Settings};

/// Bytes of the zone of a server under test.
const ZONE_BYTES: usize = 1 << 16;

/// A timeout that does not expire during a test.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);
/// Timeouts that do not expire, however busy the machine is.
pub(crate) const PATIENT: Bounds = Bounds {
    max_connections: 10_000,
    max_unfinished: 256 << 20,
    idle_timeout: NEVER,
    request_timeout: NEVER,
    write_timeout: NEVER,
    health: NEVER,
    shutdown_timeout: NEVER,
};

/// A server on free ports of this machine, with a clock that the test controls.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) clock: Arc<ManualClock>,
    /// The same clock, as the server reads it.
    pub(crate) ticking: Arc<TickingClock>,
}

impl Running {
    pub(crate) fn start() -> Running {
        Running::with(settings())
    }

    pub(crate) fn with(settings: Settings) -> Running {
        let clock = Arc::new(ManualClock::new());
        let ticking = Arc::new(TickingClock::over(clock.clone()));
        let zone = Zone::with_clock(ZONE_BYTES, ticking.clone());
        let server = Server::start(settings, zone).expect("free ports of loopback can be had");
        Running { server, clock, ticking }
    }

    /// Starts a server with these rules.
    pub(crate) fn under(rules: &str) -> Running {
        let policy = Policy::from_toml(rules).unwrap_or_else(|error| panic!("{error}"));
        Running::with(Settings { policy, ..settings() })
    }

    /// Starts a server with these resource limits.
    pub(crate) fn bounded(bounds: Bounds) -> Running {
        Running::with(Settings { bounds, ..settings() })
    }

    /// Starts a server with the token "sesame".
    pub(crate) fn guarded() -> Running {
        Running::with(Settings { token: Token::new("sesame"), ..settings() })
    }

    pub(crate) fn resp(&self) -> resp::Client {
        resp::Client::connect(self.server.resp().expect("it speaks RESP"))
    }

    /// Adds a RESP client.
    pub(crate) fn with_resp(self) -> (Running, resp::Client) {
        let client = self.resp();
        (self, client)
    }

    /// Adds an HTTP client.
    pub(crate) fn with_http(self) -> (Running, http::Talk) {
        let talk = http::Talk::to(&self);
        (self, talk)
    }
}

/// Returns settings with both fronts on free ports, one thread, and no timeouts.
pub(crate) fn settings() -> Settings {
    let free = "127.0.0.1:0".parse().ok();
    Settings { resp: free, http: free, threads: NonZeroUsize::MIN, bounds: PATIENT, ..Settings::default() }
}

/// Timeout of every read and write of a test.
const TOO_LONG: Duration = Duration::from_secs(120);

/// Opens a connection with timeouts.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a socket option can be set");
    stream.set_read_timeout(Some(TOO_LONG)).expect("a socket option can be set");
    stream.set_write_timeout(Some(TOO_LONG)).expect("a socket option can be set");
    stream
}
