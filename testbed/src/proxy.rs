//! A network that fails on demand, between a client and a real server.
//!
//! ```text
//!   client --> accept --> link: requests --> [answered here | held | swallowed] --> server
//!                         link: replies  <-- [eaten | held | swallowed | cut]  <--
//! ```
//!
//! Two threads per connection. Messages are seen whole, so a fault hits exactly what it is meant for;
//! another language than that of Redis, such as TLS, passes as bytes.
//! TCP loses nothing in the middle: a connection that has lost something stays silent in that direction until it ends.

mod faults;
mod link;
mod pump;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use faults::Shared;
use harness::Port;
use link::Door;

/// Which way messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}

/// What happens to messages of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flow {
    /// They pass.
    #[default]
    Pass,
    /// They are kept, and pass later.
    Hold,
    /// They are lost, and so is all that follows them on the same connection.
    Swallow,
}

/// What happens to those who connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// They are connected with the server.
    #[default]
    Accept,
    /// No process listens.
    Refuse,
    /// Connections are accepted but not forwarded, and get no reply until they are cut.
    BlackHole,
}

/// What becomes of a connection whose reply was eaten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Afterwards {
    /// It stays open, and nothing comes any more: the client has to give up waiting.
    #[default]
    Silence,
    /// It is cut: the client knows at once that it does not know.
    Cut,
}

/// What has been seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Connections that were accepted.
    pub opened: u64,
    /// Connections that are open now.
    pub open: u64,
    /// Requests that came whole.
    pub requests: u64,
    /// Replies that the server gave.
    pub replies: u64,
    /// Replies of the server that were eaten.
    pub eaten: u64,
    /// Requests that were answered here.
    pub answered: u64,
}

/// A proxy on a port of its own; all its connections end with it.
#[derive(Debug)]
pub struct Proxy {
    port: Arc<Port>,
    shared: Arc<Shared>,
    door: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts to forward everything to this address.
    pub fn start(target: SocketAddr) -> Proxy {
        let (port, shared) = (Arc::new(Port::free()), Arc::new(Shared::new(target)));
        let door = Door::open(&port, &shared);
        Proxy { port, shared, door: Some(door) }
    }

    /// Where clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The address as clients write it.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Sends those who connect from now on to another server; open connections stay where they are.
    pub fn retarget(&self, target: SocketAddr) {
        self.shared.change(|faults| faults.target = target);
    }

    /// Says for which commands, in capitals, replies are eaten and answers given here; none means all.
    pub fn only_for(&self, commands: &[&str]) {
        let commands: Vec<_> = commands.iter().map(|command| (*command).to_owned()).collect();
        self.shared.change(|faults| faults.only = commands);
    }

    /// Says what happens to messages of a direction.
    pub fn flow(&self, direction: Direction, flow: Flow) {
        self.shared.change(|faults| faults.way_mut(direction).flow = flow);
    }

    /// Cuts the connection on which the byte after so many of this direction would pass; once.
    pub fn cut_after(&self, direction: Direction, bytes: usize) {
        self.shared.change(|faults| faults.way_mut(direction).cut_after = Some(bytes));
    }

    /// Eats the next replies, which the server gives after it has done what was asked.
    pub fn eat_replies(&self, count: u64, afterwards: Afterwards) {
        self.shared.change(|faults| faults.eating = (count, afterwards));
    }

    /// Answers the next requests with this line, such as `-LOADING …`; the server does not see them.
    pub fn answer(&self, count: u64, line: &str) {
        self.shared.change(|faults| faults.answer = (count, format!("{line}\r\n").into_bytes()));
    }

    /// Says what happens to those who connect from now on; it holds when this returns.
    /// Connections that are not accepted yet count, too.
    pub fn admit(&self, admission: Admission) {
        self.shared.change(|faults| faults.admission = admission);
        link::wake(&self.port, &self.shared);
        self.shared.wait_for_door();
    }

    /// Cuts all connections now.
    pub fn cut(&self) {
        self.shared.cut();
    }

    /// Ends all faults; connections that have lost something stay silent until they end.
    pub fn clear(&self) {
        self.shared.change(|faults| *faults = faults.cleared());
        link::wake(&self.port, &self.shared);
        self.shared.wait_for_door();
    }

    /// What has been seen so far.
    pub fn counters(&self) -> Counters {
        self.shared.counters()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.end();
        link::wake(&self.port, &self.shared);
        self.shared.cut();
        if let Some(door) = self.door.take() {
            let _ = door.join();
        }
    }
}
