//! Open-loop load: requests leave when their time has come, however many are still out.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use conformance::random::Random;
use harness::now;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

/// The timeout of a reply, so that a lost one does not hang the drill.
const LONGEST: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const LONGEST_ANSWER: usize = 16 << 10;

/// One request: when it leaves, and how much work it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) at: Duration,
    pub(super) work: Duration,
}

/// How a request ended: its status, and the time since it should have left.
pub(super) type Ended = io::Result<(u16, Duration)>;

/// Requests at random, so many per second for so long.
pub(super) fn schedule(seed: u64, per_second: f64, length: Duration) -> Vec<Request> {
    let mut random = Random::new(seed);
    let mut requests = Vec::new();
    let mut at = Duration::ZERO;
    while at < length {
        let gap = -((random.number() >> 11) as f64 + 1.0).ln() + 53.0 * std::f64::consts::LN_2;
        at += Duration::from_secs_f64(gap / per_second);
        requests.push(Request { at, work: work(&mut random) });
    }
    requests
}

/// Seven in ten take 10 to 30 ms, the others 30 to 70.
fn work(random: &mut Random) -> Duration {
    let (low, high) = if random.percent(70) { (10_000, 30_000) } else { (30_000, 70_000) };
    Duration::from_micros(random.between(low, high))
}

/// Sends all of them; how each ended.
pub(super) async fn send(requests: &[Request], address: SocketAddr) -> Vec<Ended> {
    let begin = Instant::from_std(now());
    let connections = Arc::new(Connections { address, idle: Mutex::default() });
    let mut sent = Vec::with_capacity(requests.len());
    for request in requests.iter().copied() {
        sleep_until(begin + request.at).await;
        let connections = Arc::clone(&connections);
        sent.push(tokio::spawn(async move {
            let answer = timeout(LONGEST, connections.ask(request.work)).await;
            let status = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
            Ok((status, (begin + request.at).elapsed()))
        }));
    }
    let mut ended = Vec::with_capacity(sent.len());
    for task in sent {
        ended.push(task.await.unwrap_or_else(|error| Err(io::Error::other(error))));
    }
    ended
}

/// Connections that are kept, one request at a time on each.
struct Connections {
    address: SocketAddr,
    idle: Mutex<Vec<TcpStream>>,
}

impl Connections {
    async fn ask(&self, work: Duration) -> io::Result<u16> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => TcpStream::connect(self.address).await?,
        };
        let request = format!("GET /{} HTTP/1.1\r\nhost: drill\r\n\r\n", work.as_micros());
        connection.write_all(request.as_bytes()).await?;
        let status = read_answer(&mut connection).await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(status)
    }
}

/// Reads one answer to its end; its status.
async fn read_answer(connection: &mut TcpStream) -> io::Result<u16> {
    let mut bytes = Vec::with_capacity(512);
    loop {
        if let Some((status, length)) = answer(&bytes)
            && bytes.len() >= length
        {
            return Ok(status);
        }
        if bytes.len() > LONGEST_ANSWER || connection.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// The status of an answer and its length with its body, once the head is there.
fn answer(bytes: &[u8]) -> Option<(u16, usize)> {
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n")?;
    let text = std::str::from_utf8(&bytes[..head]).ok()?.to_ascii_lowercase();
    let status = text.split(' ').nth(1)?.parse().ok()?;
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let body: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    Some((status, head + 4 + body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_with_its_body() {
        assert_eq!(answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"), None);
        assert_eq!(answer(b"HTTP/1.1 200 OK\r\n\r\n"), Some((200, 19)));
        assert_eq!(answer(b"HTTP/1.1 503 No\r\nContent-Length: 5\r\n\r\nab"), Some((503, 43)));
    }

    #[test]
    fn a_schedule_has_the_rate_and_the_work_that_were_asked_for() {
        let requests = schedule(1, 1000.0, Duration::from_secs(100));
        assert!((98_000..102_000).contains(&requests.len()), "{}", requests.len());
        let work: Duration = requests.iter().map(|request| request.work).sum();
        let mean = work.as_secs_f64() * 1000.0 / requests.len() as f64;
        assert!((28.5..29.5).contains(&mean), "{mean} ms");
        assert!(requests.is_sorted_by_key(|request| request.at));
    }
}
