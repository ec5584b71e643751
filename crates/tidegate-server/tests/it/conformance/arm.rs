//! Plays traces over a real socket.

use std::collections::HashMap;

use conformance::arm::{Answer, Arm, Take};
use tidegate::{Adjusted, Adjustment, Ask, Clock as _, Limit, PermitId, Ticks, Timestamp};

use super::front::{FrontClient, RESOLUTION};
use crate::wire::Running;

/// The number of pipelined takes that the server decides at one instant.
const GROUP: usize = 64;

/// A server, and a client of one of its fronts.
pub(crate) struct OverWire<T> {
    running: Running,
    client: T,
    limit: Limit,
    /// The server's text for each permit. Permits of different keys may have the same number.
    permits: HashMap<(String, PermitId), String>,
}

impl<T: FrontClient> OverWire<T> {
    pub(crate) fn new() -> OverWire<T> {
        let running = Running::start();
        let client = T::connect(&running);
        OverWire { running, client, limit: Limit::per_second(1), permits: HashMap::new() }
    }
}

impl<T> OverWire<T> {
    fn note(&mut self, key: &str, (answer, permit): (Answer, Option<String>)) -> Answer {
        self.permits.extend(answer.permit.map(|id| (key.to_owned(), id)).zip(permit));
        answer
    }
}

impl<T: FrontClient> Arm for OverWire<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn resolution(&self) -> Ticks {
        RESOLUTION
    }

    fn can(&self, need: &str) -> bool {
        !matches!(need, "give-back" | "ticks")
    }

    fn begin(&mut self, limit: Limit) {
        *self = OverWire { limit, ..OverWire::new() };
        // The first use of a limit reads the clock once more.
        self.client.peek(b"", &limit, Ask::ONE);
    }

    fn set_time(&mut self, now: Timestamp) {
        self.running.clock.set(now);
    }

    fn take(&mut self, key: &str, ask: Ask, _: Option<&str>) -> Answer {
        let reply = self.client.take(key.as_bytes(), &self.limit, ask);
        self.note(key, reply)
    }

    fn tick(&mut self, step: Ticks) -> bool {
        self.running.ticking.tick(step);
        true
    }

    fn take_each(&mut self, takes: &[Take<'_>]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(takes.len());
        let now = self.running.clock.now();
        // Each group is decided at its own instant; here all have the instant of the batch.
        for group in takes.chunks(GROUP) {
            self.running.clock.set(now);
            let replies = self.client.take_each(group, &self.limit);
            answers.extend(group.iter().zip(replies).map(|(take, reply)| self.note(take.key, reply)));
        }
        answers
    }

    fn peek(&mut self, key: &str, ask: Ask) -> Answer {
        self.client.peek(key.as_bytes(), &self.limit, ask)
    }

    fn adjust(&mut self, key: &str, adjustment: Adjustment) -> Adjusted {
        self.client.adjust(key.as_bytes(), &self.limit, adjustment)
    }

    fn reset(&mut self, key: &str) {
        self.client.reset(key.as_bytes());
    }

    fn release(&mut self, key: &str, permit: PermitId) -> bool {
        self.client.release(&self.permits[&(key.to_owned(), permit)])
    }

    fn renew(&mut self, key: &str, permit: PermitId) -> bool {
        self.client.renew(&self.permits[&(key.to_owned(), permit)])
    }
}
