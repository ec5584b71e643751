//! The closed loop: every connection sends a batch, waits for all of its replies and sends the next.

use std::time::{Duration, Instant};

use super::{Clients, Load, Requests, SILENCE};
use crate::stopwatch::instant;

/// When no more is sent; what was sent is still waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    /// After this time.
    Elapsed(Duration),
    /// After so many requests, and those that fill the last batch.
    Requests(u64),
}

impl Clients {
    /// Keeps all connections busy with so many requests in flight on each.
    pub(crate) fn closed(
        &mut self,
        requests: &mut Requests,
        depth: usize,
        until: Until,
    ) -> Result<Load, String> {
        let (start, mut load, mut sent) = (instant(), Load::new(), 0);
        let mut busy = 0;
        for place in 0..self.connections.len() {
            if until.goes_on(start, start, sent) {
                self.send_batch(place, requests, (depth, start))?;
                (sent, busy) = (sent + depth as u64, busy + 1);
            }
        }
        while busy > 0 {
            self.wait(SILENCE)?;
            if self.ready.is_empty() {
                return Err(format!("no reply for {SILENCE:?}"));
            }
            for event in 0..self.ready.len() {
                let place = self.ready[event].data.u64() as usize;
                let Some(now) = self.receive_some(place, &mut load)? else { continue };
                if until.goes_on(start, now, sent) {
                    self.send_batch(place, requests, (depth, now))?;
                    sent += depth as u64;
                } else {
                    busy -= 1;
                }
            }
        }
        load.took = start.elapsed();
        Ok(load)
    }

    fn send_batch(
        &mut self,
        place: usize,
        requests: &mut Requests,
        (depth, now): (usize, Instant),
    ) -> Result<(), String> {
        let connection = &mut self.connections[place];
        (connection.in_flight, connection.sent_at) = (depth as u64, now);
        connection.send(requests.take(depth))
    }

    /// Counts the replies on a connection; the time, if none is missing any more.
    fn receive_some(&mut self, place: usize, load: &mut Load) -> Result<Option<Instant>, String> {
        let connection = &mut self.connections[place];
        let complete = connection.receive(&mut self.buffer, &mut load.tally)?;
        let now = instant();
        load.latencies.record(now - connection.sent_at, complete);
        if complete > connection.in_flight {
            return Err("more replies than requests".to_owned());
        }
        connection.in_flight -= complete;
        Ok((complete > 0 && connection.in_flight == 0).then_some(now))
    }
}

impl Until {
    fn goes_on(self, start: Instant, now: Instant, sent: u64) -> bool {
        match self {
            Until::Elapsed(time) => now - start < time,
            Until::Requests(count) => sent < count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_ends_after_its_time_or_its_requests() {
        let start = instant();
        let (second, later) = (Duration::from_secs(1), start + Duration::from_secs(1));
        assert!(Until::Elapsed(second).goes_on(start, start, u64::MAX));
        assert!(!Until::Elapsed(second).goes_on(start, later, 0));
        assert!(Until::Requests(10).goes_on(start, later, 9));
        assert!(!Until::Requests(10).goes_on(start, start, 10));
    }
}
