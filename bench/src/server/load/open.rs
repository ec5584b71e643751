//! The open loop: requests are due at times of their own, whether or not those before them were answered.
//!
//! A latency counts from when its request was due, not from when it was sent, so a server that stalls cannot hide
//! the requests that would have come meanwhile.

use std::time::{Duration, Instant};

use super::{Clients, Load, Requests, SILENCE};
use crate::stopwatch::instant;

/// How many are sent before replies are looked at again.
const SENT_TOGETHER: u64 = 16;

/// Evenly spaced times, dealt to the connections in turn.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    start: Instant,
    /// Requests per second.
    rate: f64,
    total: u64,
}

impl Clients {
    /// Sends so many requests per second, for so long; waits for all replies.
    pub(crate) fn open(
        &mut self,
        requests: &mut Requests,
        rate: f64,
        length: Duration,
    ) -> Result<Load, String> {
        let total = (rate * length.as_secs_f64()) as u64;
        let schedule = Schedule { start: instant(), rate, total };
        let (mut load, mut sent, mut last_reply) = (Load::new(), 0, schedule.start);
        self.connections.iter_mut().for_each(|connection| connection.answered = 0);
        while load.tally.replies < total {
            let now = instant();
            let due = schedule.due(now).min(sent + SENT_TOGETHER);
            while sent < due {
                let place = sent as usize % self.connections.len();
                self.connections[place].send(requests.take(1))?;
                sent += 1;
            }
            self.wait(Duration::ZERO)?;
            for event in 0..self.ready.len() {
                let place = self.ready[event].data.u64() as usize;
                last_reply = self.receive_due(place, &schedule, &mut load)?;
            }
            if now.saturating_duration_since(last_reply) > SILENCE {
                return Err(format!("no reply for {SILENCE:?}"));
            }
        }
        load.took = schedule.start.elapsed();
        Ok(load)
    }

    /// Counts the replies on a connection from when their requests were due; when that was.
    fn receive_due(&mut self, place: usize, schedule: &Schedule, load: &mut Load) -> Result<Instant, String> {
        let count = self.connections.len() as u64;
        let connection = &mut self.connections[place];
        let complete = connection.receive(&mut self.buffer, &mut load.tally)?;
        let now = instant();
        for answered in connection.answered..connection.answered + complete {
            let due = schedule.time_of(place as u64 + answered * count);
            load.latencies.record(now.saturating_duration_since(due), 1);
        }
        connection.answered += complete;
        Ok(now)
    }
}

impl Schedule {
    /// How many requests are due by then.
    fn due(&self, now: Instant) -> u64 {
        let due = (now - self.start).as_secs_f64() * self.rate;
        (due as u64 + 1).min(self.total)
    }

    /// When this request is due.
    fn time_of(&self, request: u64) -> Instant {
        self.start + Duration::from_secs_f64(request as f64 / self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_due_at_its_time_and_not_before() {
        let schedule = Schedule { start: instant(), rate: 1000.0, total: 5 };
        assert_eq!(schedule.due(schedule.start), 1);
        for request in 1..5 {
            let time = schedule.time_of(request);
            assert_eq!(schedule.due(time + Duration::from_micros(1)), request + 1);
            assert_eq!(schedule.due(time - Duration::from_micros(1)), request);
        }
        assert_eq!(schedule.due(schedule.start + Duration::from_secs(1)), 5);
    }
}
