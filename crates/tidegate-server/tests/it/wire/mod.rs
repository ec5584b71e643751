//! What tests speak with: a server in this process, whose clock they set, and plain sockets to it.

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

/// A time that does not pass while a test runs.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);
/// Bounds of time that no client misses, however busy the machine is.
pub(crate) const PATIENT: Bounds = Bounds {
    max_connections: 10_000,
    max_unfinished: 256 << 20,
    idle: NEVER,
    arrival: NEVER,
    unread: NEVER,
    health: NEVER,
    grace: NEVER,
};

/// A server on free ports of this machine, whose time is what a test says.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) clock: Arc<ManualClock>,
    /// The same clock as the server reads it.
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

    /// With these rules in force.
    pub(crate) fn under(rules: &str) -> Running {
        let policy = Policy::from_toml(rules).unwrap_or_else(|error| panic!("{error}"));
        Running::with(Settings { policy, ..settings() })
    }

    /// With these bounds.
    pub(crate) fn bounded(bounds: Bounds) -> Running {
        Running::with(Settings { bounds, ..settings() })
    }

    /// With a token, which is "sesame".
    pub(crate) fn guarded() -> Running {
        Running::with(Settings { token: Token::new("sesame"), ..settings() })
    }

    pub(crate) fn resp(&self) -> resp::Client {
        resp::Client::connect(self.server.resp().expect("it speaks RESP"))
    }

    /// And a client of RESP.
    pub(crate) fn with_resp(self) -> (Running, resp::Client) {
        let client = self.resp();
        (self, client)
    }

    /// And a client of HTTP.
    pub(crate) fn with_http(self) -> (Running, http::Talk) {
        let talk = http::Talk::to(&self);
        (self, talk)
    }
}

/// Both fronts on free ports, one thread, and all the time in the world.
pub(crate) fn settings() -> Settings {
    let free = "127.0.0.1:0".parse().ok();
    Settings { resp: free, http: free, threads: NonZeroUsize::MIN, bounds: PATIENT, ..Settings::default() }
}

/// How long a test waits before it fails. Nothing is expected to take this long.
const TOO_LONG: Duration = Duration::from_secs(120);

/// A socket that never waits for ever.
pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a socket can be told");
    stream.set_read_timeout(Some(TOO_LONG)).expect("a socket can be told");
    stream.set_write_timeout(Some(TOO_LONG)).expect("a socket can be told");
    stream
}
