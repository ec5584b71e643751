//! Servers that share the file of a zone, each a separate process as far as the zone can detect, and restarts.

use std::sync::Arc;

use conformance::Folder;
use conformance::versions::{Versions, carries};
use tidegate::{Ask, Decision, Key, Limit, ManualClock, PreparedLimit, State, Subject, Timestamp, Zone};

const BYTES: usize = 1 << 12;

/// Servers on one file. A server that reloads its rules is restarted.
#[derive(Debug)]
pub(crate) struct OnFile<const SERVERS: usize> {
    folder: Folder,
    clock: Arc<ManualClock>,
    key: Key,
    servers: [Option<Server>; SERVERS],
}

#[derive(Debug)]
struct Server {
    zone: Zone,
    limit: PreparedLimit,
}

impl<const SERVERS: usize> Default for OnFile<SERVERS> {
    fn default() -> OnFile<SERVERS> {
        let (folder, clock) = (Folder::in_memory(), Arc::new(ManualClock::new()));
        OnFile { folder, clock, key: Key::new("k"), servers: std::array::from_fn(|_| None) }
    }
}

impl<const SERVERS: usize> OnFile<SERVERS> {
    fn server(&self, server: usize) -> &Server {
        self.servers[server].as_ref().expect("a server announces its limit first")
    }
}

impl<const SERVERS: usize> Versions for OnFile<SERVERS> {
    fn name(&self) -> &'static str {
        "zone in a file"
    }

    fn servers(&self) -> usize {
        SERVERS
    }

    /// Returns true for limits that the file can carry; states of more than one word belong to one process.
    fn holds(&self, limit: &Limit) -> bool {
        carries::<Zone>(limit) && (SERVERS == 1 || limit.fits_cell())
    }

    fn set_time(&mut self, now: Timestamp) {
        self.clock.set(now);
    }

    fn announce(&mut self, server: usize, limit: &Limit) {
        self.servers[server] = None;
        let zone = Zone::in_file_with_clock(self.folder.zone(), BYTES, self.clock.clone());
        let zone = zone.expect("a zone in a file");
        let limit = PreparedLimit::of_rule("rule", *limit);
        let _ = zone.peek(limit.subject(&self.key), Ask::ONE);
        self.servers[server] = Some(Server { zone, limit });
    }

    fn take(&mut self, server: usize, ask: Ask) -> Decision {
        let Server { zone, limit } = self.server(server);
        zone.take(limit.subject(&self.key), ask).0
    }

    fn peek(&self, server: usize, ask: Ask) -> Decision {
        let Server { zone, limit } = self.server(server);
        zone.peek(limit.subject(&self.key), ask)
    }

    fn state(&self, limit: &Limit) -> State {
        self.server(0).zone.state(Subject::new("rule", &self.key, limit))
    }
}
