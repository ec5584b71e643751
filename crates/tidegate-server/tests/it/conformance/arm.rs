//! Traces over a real socket.

use std::collections::HashMap;

use conformance::arm::{Answer, Arm};
use tidegate::{Adjusted, Adjustment, Ask, Limit, PermitId, Ticks, Timestamp};

use super::told::{RESOLUTION, Told};
use crate::wire::Running;

/// A server, and a client that speaks one of its languages.
pub(crate) struct OverWire<T> {
    running: Running,
    client: T,
    limit: Limit,
    permits: HashMap<PermitId, String>,
}

impl<T: Told> OverWire<T> {
    pub(crate) fn new() -> OverWire<T> {
        let running = Running::start();
        let client = T::connect(&running);
        OverWire { running, client, limit: Limit::per_second(1), permits: HashMap::new() }
    }
}

impl<T: Told> Arm for OverWire<T> {
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
    }

    fn change(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn set_time(&mut self, now: Timestamp) {
        self.running.clock.set(now);
    }

    fn take(&mut self, key: &str, ask: Ask, _: Option<&str>) -> Answer {
        let (answer, permit) = self.client.take(key.as_bytes(), &self.limit, ask);
        self.permits.extend(answer.permit.zip(permit));
        answer
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

    fn give_back(&mut self, _: &str, _: &str) -> Adjusted {
        unreachable!("a trace that gives back needs it, and this arm cannot")
    }

    fn release(&mut self, _: &str, permit: PermitId) -> bool {
        self.client.release(&self.permits[&permit])
    }

    fn renew(&mut self, _: &str, permit: PermitId) -> bool {
        self.client.renew(&self.permits[&permit])
    }
}
