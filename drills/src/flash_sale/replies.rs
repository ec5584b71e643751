//! Replies that are lost: the buyer asks again with the same key, and has one order.
//!
//! The first question is cut off right after it was sent, a little later, or when its answer has come and no client has
//! read it. Then the same is asked twice more, and both answers have to name one order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use conformance::random::Random;
use flash_sale::database::Dialect;
use harness::sale::{Answer, Door, Ledger, Wish, WishResult, Word, open};
use harness::{Options, Progress, Report, thousands};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::claim_no_findings;
use super::lane::{ALL, Lane, said};

/// Buyers on each of [`ALL`].
const TIMES: [u64; 3] = [4_000, 3_000, 3_000];
const WORKERS: u64 = 16;
/// The most microseconds after which a client hangs up.
const HANGS_UP: u64 = 8_000;
/// Longer than it takes: nothing expires.
const PAY_WITHIN: Duration = Duration::from_secs(3600);

const STRATEGIES: [&str; 4] = ["value", "version", "conditional", "pessimistic"];

/// Who asks, by which key, and how a piece is to be taken.
///
/// The same each time: a buyer who locks in one order and then in another one waits for himself.
type Asked<'a> = (&'a str, &'a str, &'static str);

/// What workers share.
#[derive(Debug)]
struct Loss {
    door: Door,
    times: u64,
    next: AtomicU64,
    /// How often the first question had done its work when it was asked again.
    replayed: AtomicU64,
    progress: Progress,
}

pub(super) async fn run(options: &Options, report: &mut Report) -> Result<(), String> {
    for (dialect, times) in ALL.into_iter().zip(TIMES) {
        let times = options.scaled(times);
        let done = on(dialect, times, options.seed).await;
        let (replayed, orders, findings) = done.map_err(|problem| format!("{dialect}: {problem}"))?;
        report.fact(format!(
            "{dialect}: {} replies lost, {} of them after the work was done; {} orders",
            thousands(times),
            thousands(replayed),
            thousands(orders),
        ));
        claim_no_findings(report, &format!("replies on {dialect}: one order each"), &findings);
        report.claim(replayed > 0, "replies were lost after the work was done", thousands(replayed));
    }
    Ok(())
}

async fn on(dialect: Dialect, times: u64, seed: u64) -> Result<(u64, u64, Vec<String>), String> {
    let lane = Lane::open(dialect, None).await?;
    let (mut serving, door) = open(&lane.stage, &lane.database, times as i64, PAY_WITHIN).await?;
    let sale = door.sale;
    let progress = Progress::new(format!("replies on {dialect}"), times);
    let loss = Loss { door, times, next: AtomicU64::new(0), replayed: AtomicU64::new(0), progress };
    let loss = Arc::new(loss);
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        workers.spawn(work(Arc::clone(&loss), Random::new(seed.wrapping_add(worker))));
    }
    let mut results = Vec::new();
    while let Some(worker) = workers.join_next().await {
        results.extend(worker.map_err(said)??);
    }
    let books = Ledger::books(&lane.database, sale).await?;
    let orders = books.count(|_| true);
    let mut findings = books.findings();
    let is_there =
        |result: &&WishResult| result.order().and_then(|order| books.entry(order, &result.user, &result.key));
    let missing = results.iter().filter(|result| is_there(result).is_none());
    findings.extend(missing.map(|result| format!("G-4: {result:?} is not in the books")));
    if orders != times || results.len() as u64 != times {
        findings.push(format!("G-3: {orders} orders of {times} buyers, {} got one", results.len()));
    }
    findings.extend(Ledger::audit(&lane.database).await?);
    serving.kill().await.map_err(said)?;
    Ok((loss.replayed.load(Ordering::Relaxed), orders, findings))
}

async fn work(loss: Arc<Loss>, mut random: Random) -> Result<Vec<WishResult>, String> {
    let mut results = Vec::new();
    loop {
        let number = loss.next.fetch_add(1, Ordering::Relaxed);
        if number >= loss.times {
            return Ok(results);
        }
        let (user, key) = (format!("buyer-{number}"), format!("key-{number}"));
        let strategy = random.pick(&STRATEGIES);
        let wish = (user.as_str(), key.as_str(), strategy);
        lose(&loss.door, wish, &mut random).await.map_err(said)?;
        let first = loss.until_reserved(wish).await?;
        let second = loss.until_reserved(wish).await?;
        if first.order() != second.order() || !second.is_replayed {
            return Err(format!("G-3: {user} got {first:?}, then {second:?}"));
        }
        loss.replayed.fetch_add(u64::from(first.is_replayed), Ordering::Relaxed);
        let order = first.order().unwrap_or_default().to_owned();
        results.push(WishResult { user, key, heard: Word::Reserved(order), is_paid: None });
        loss.progress.at(number + 1, format!("{} done before", loss.replayed.load(Ordering::Relaxed)));
    }
}

impl Loss {
    /// Asks again as long as another buyer is faster: there is enough for all.
    async fn until_reserved(&self, (user, key, strategy): Asked<'_>) -> Result<Answer, String> {
        loop {
            let answer = self.door.buy(user, key, strategy).await.map_err(said)?;
            if answer.is(201, "reserved") {
                return Ok(answer);
            }
            if !answer.is(409, "conflict") {
                return Err(format!("{user} by key {key}: {answer:?}"));
            }
        }
    }
}

/// Asks, and is gone before the answer is read.
async fn lose(door: &Door, (user, key, strategy): Asked<'_>, random: &mut Random) -> std::io::Result<()> {
    let question = text(door.wish(&Wish { user, key, strategy, limiter: "off", address: 0 })).await;
    let mut stream = TcpStream::connect(door.shop).await?;
    stream.write_all(&question).await?;
    match random.between(0, 2) {
        0 => {}
        1 => sleep(Duration::from_micros(random.between(0, HANGS_UP))).await,
        _ => {
            stream.ready(Interest::READABLE).await?;
        }
    }
    Ok(())
}

/// A request as it goes over the wire.
async fn text(request: Request<Full<Bytes>>) -> Vec<u8> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut text = format!("{} {} HTTP/1.1\r\n", head.method, head.uri).into_bytes();
    for (name, value) in &head.headers {
        text.extend_from_slice(format!("{name}: ").as_bytes());
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    text.extend_from_slice(&body);
    text
}
