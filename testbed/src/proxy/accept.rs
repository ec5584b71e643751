//! The door: takes connections as long as somebody is to listen.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::Admission;
use super::faults::Shared;
use super::link::Link;
use super::pump;
use crate::port::Port;

/// Where connections come in.
pub(super) struct Door {
    port: Arc<Port>,
    shared: Arc<Shared>,
}

impl Door {
    /// Begins to listen, on a thread.
    pub(super) fn open(port: &Arc<Port>, shared: &Arc<Shared>) -> JoinHandle<()> {
        let door = Door { port: Arc::clone(port), shared: Arc::clone(shared) };
        let thread = thread::spawn(move || door.watch());
        shared.wait_for_door();
        thread
    }

    fn watch(&self) {
        while self.shared.wait_to_listen() {
            let address = self.port.address();
            let listener = TcpListener::bind(address);
            let listener = listener.unwrap_or_else(|error| panic!("proxy at {address}: {error}"));
            self.shared.listening(true);
            self.accept_all(&listener);
            drop(listener);
            self.shared.listening(false);
        }
    }

    /// Takes everybody until nobody is to be taken.
    fn accept_all(&self, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            let Some(admission) = self.shared.admission() else { return };
            // Whoever is gone already, or has no descriptor left for us, is not served.
            if let Ok((client, _)) = accepted {
                self.serve(client, admission);
            }
        }
    }

    fn serve(&self, client: TcpStream, admission: Admission) {
        let shared = Arc::clone(&self.shared);
        let server = match admission {
            Admission::BlackHole => None,
            _ => match TcpStream::connect(shared.target()) {
                Ok(server) => Some(server),
                // The client sees a connection that ends at once.
                Err(_) => return,
            },
        };
        let link = Arc::new(Link::new(client, server));
        shared.opened(&link);
        thread::spawn(move || {
            pump::run(&shared, &link);
            shared.closed(&link);
        });
    }
}

/// Wakes a door that waits for somebody to come.
pub(super) fn wake(port: &Port, shared: &Shared) {
    if shared.admission().is_none() && shared.is_listening() {
        // Nobody but the door sees this connection, and it may be too late already.
        drop(TcpStream::connect(port.address()));
    }
}
