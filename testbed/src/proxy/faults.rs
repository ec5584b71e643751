//! What the threads of a proxy share: the faults in force, the open connections, what was counted.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::link::Link;
use super::{Admission, Afterwards, Counters, Direction, Flow};

/// The faults in force.
#[derive(Debug)]
pub(super) struct Faults {
    pub(super) target: SocketAddr,
    pub(super) admission: Admission,
    pub(super) only: Vec<String>,
    /// How many replies are eaten, and what comes after each.
    pub(super) eating: (u64, Afterwards),
    /// How many requests get this answer.
    pub(super) answer: (u64, Vec<u8>),
    requests: Way,
    replies: Way,
    /// Whether the door listens.
    is_listening: bool,
    is_over: bool,
}

/// The faults of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Way {
    pub(super) flow: Flow,
    pub(super) cut_after: Option<usize>,
}

impl Faults {
    pub(super) fn way_mut(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::Requests => &mut self.requests,
            Direction::Replies => &mut self.replies,
        }
    }

    /// None, but the same target and the same door.
    pub(super) fn cleared(&self) -> Faults {
        Faults { is_listening: self.is_listening, is_over: self.is_over, ..Faults::none(self.target) }
    }

    fn none(target: SocketAddr) -> Faults {
        Faults {
            target,
            admission: Admission::Accept,
            only: Vec::new(),
            eating: (0, Afterwards::default()),
            answer: (0, Vec::new()),
            requests: Way::default(),
            replies: Way::default(),
            is_listening: false,
            is_over: false,
        }
    }

    fn wants_a_listener(&self) -> bool {
        self.admission != Admission::Refuse && !self.is_over
    }

    fn is_meant(&self, command: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == command)
    }
}

/// What the threads share.
#[derive(Debug)]
pub(super) struct Shared {
    faults: Mutex<Faults>,
    changed: Condvar,
    links: Mutex<Vec<Arc<Link>>>,
    counters: Mutex<Counters>,
}

impl Shared {
    pub(super) fn new(target: SocketAddr) -> Shared {
        let (faults, links) = (Mutex::new(Faults::none(target)), Mutex::default());
        Shared { faults, changed: Condvar::new(), links, counters: Mutex::default() }
    }

    /// Changes faults, and wakes those who wait because of them.
    pub(super) fn change(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.faults());
        self.changed.notify_all();
    }

    pub(super) fn target(&self) -> SocketAddr {
        self.faults().target
    }

    /// The fate of a new connection; `None` if there should be none.
    pub(super) fn admission(&self) -> Option<Admission> {
        let faults = self.faults();
        faults.wants_a_listener().then_some(faults.admission)
    }

    /// Waits until the door is to listen; false if all is over.
    pub(super) fn wait_to_listen(&self) -> bool {
        let mut faults = self.faults();
        while !faults.wants_a_listener() && !faults.is_over {
            faults = self.changed.wait(faults).unwrap_or_else(PoisonError::into_inner);
        }
        !faults.is_over
    }

    pub(super) fn listening(&self, is_listening: bool) {
        self.change(|faults| faults.is_listening = is_listening);
    }

    pub(super) fn is_listening(&self) -> bool {
        self.faults().is_listening
    }

    /// Waits until the door is as it is wanted.
    pub(super) fn wait_for_door(&self) {
        let mut faults = self.faults();
        while faults.is_listening != faults.wants_a_listener() {
            faults = self.changed.wait(faults).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn end(&self) {
        self.change(|faults| faults.is_over = true);
    }

    /// Waits as long as messages are held; what happens to one, or nothing if its connection is cut.
    pub(super) fn wait_to_pass(&self, link: &Link, direction: Direction) -> Option<Flow> {
        let mut faults = self.faults();
        while !link.is_cut() {
            match faults.way_mut(direction).flow {
                Flow::Hold => faults = self.changed.wait(faults).unwrap_or_else(PoisonError::into_inner),
                flow => return Some(flow),
            }
        }
        None
    }

    /// How many of these bytes may pass before the connection is to be cut.
    pub(super) fn allowance(&self, direction: Direction, bytes: usize) -> (usize, bool) {
        let mut faults = self.faults();
        let way = faults.way_mut(direction);
        match way.cut_after {
            Some(left) if bytes > left => {
                way.cut_after = None;
                (left, true)
            }
            Some(left) => {
                way.cut_after = Some(left - bytes);
                (bytes, false)
            }
            None => (bytes, false),
        }
    }

    /// What a request is answered here, if it is; else whether its reply may be eaten.
    pub(super) fn answer(&self, command: &str) -> Result<Vec<u8>, bool> {
        let mut faults = self.faults();
        let is_meant = faults.is_meant(command);
        if !is_meant || faults.answer.0 == 0 {
            return Err(is_meant);
        }
        faults.answer.0 -= 1;
        Ok(faults.answer.1.clone())
    }

    /// Whether a reply that may be eaten is.
    pub(super) fn eat(&self) -> Option<Afterwards> {
        let mut faults = self.faults();
        let (left, afterwards) = faults.eating;
        faults.eating.0 = left.checked_sub(1)?;
        Some(afterwards)
    }

    pub(super) fn cut(&self) {
        for link in self.links().drain(..) {
            link.cut();
        }
        // A waiting thread has to see that its connection is cut.
        drop(self.faults());
        self.changed.notify_all();
    }

    pub(super) fn opened(&self, link: &Arc<Link>) {
        self.links().push(Arc::clone(link));
        self.count(|counters| {
            counters.opened += 1;
            counters.open += 1;
        });
    }

    pub(super) fn closed(&self, link: &Arc<Link>) {
        self.links().retain(|other| !Arc::ptr_eq(other, link));
        self.count(|counters| counters.open -= 1);
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Counters)) {
        count(&mut self.counters.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn counters(&self) -> Counters {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
