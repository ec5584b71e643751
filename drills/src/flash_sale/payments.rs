//! Payments in the very moment in which the reservation ends.
//!
//! Each buyer reserves a piece and pays for it when its time ends, a millisecond earlier or later, while two sweepers
//! return without a pause what is over. How long before the end a payer has to set out so that half of them are in time
//! is learned on the way: so most of them meet the sweepers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use conformance::random::Random;
use flash_sale::audit::{expires_at, paid_at_the_end};
use flash_sale::database::{Database, Dialect};
use flash_sale::outcome::{Outcome, Wish};
use flash_sale::payment::Payment;
use flash_sale::sale::NewSale;
use flash_sale::shop::Shop;
use flash_sale::strategy::Strategy;
use harness::sale::{Ledger, WishResult, Word};
use harness::{Options, Progress, Report, thousands, unix_time};
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use super::claim_no_findings;
use super::lane::{ALL, said, start};

/// Orders on each of [`ALL`].
const ORDERS: [u64; 3] = [4_000, 3_000, 3_000];
const PAYERS: u64 = 16;
const CONNECTIONS: u32 = 24;
/// How long a piece is reserved.
const PAY_WITHIN: Duration = Duration::from_millis(100);
/// How far payers are off, in microseconds.
const OFF: i64 = 1_000;
/// By how much later or earlier the next one sets out after each that was in time or too late, in microseconds.
const STEP: i64 = 100;
/// Timers are late by up to this, in microseconds: the rest is waited for by looking at the clock.
const COARSE: i64 = 2_000;
/// How much of both there has to be, in percent: else they have not met.
const MET: u64 = 5;

/// What became of the orders of one database.
#[derive(Clone, Debug, Default)]
struct Raced {
    orders: u64,
    paid: u64,
    returned: u64,
    /// Paid in the last two milliseconds.
    at_the_end: u64,
    findings: Vec<String>,
}

/// What payers share.
#[derive(Debug)]
struct Race {
    shop: Shop,
    sale: i64,
    orders: u64,
    next: AtomicU64,
    /// How long before the end a payer sets out, in microseconds.
    lead: AtomicI64,
    progress: Progress,
}

pub(super) async fn run(options: &Options, report: &mut Report) -> Result<(), String> {
    for (dialect, count) in ALL.into_iter().zip(ORDERS) {
        let count = options.scaled(count);
        let raced = on(dialect, count, options.seed).await;
        let raced = raced.map_err(|problem| format!("{dialect}: {problem}"))?;
        report.fact(format!(
            "{dialect}: {} orders, {} paid ({} of them in the last 2 ms), {} returned",
            thousands(raced.orders),
            thousands(raced.paid),
            thousands(raced.at_the_end),
            thousands(raced.returned),
        ));
        let claim = format!("payments on {dialect}: each order is paid or returned, once");
        claim_no_findings(report, &claim, &raced.findings);
        let least = raced.orders * MET;
        let is_met = raced.paid * 100 > least && raced.returned * 100 > least;
        let counts = format!("{} of {} paid in time", thousands(raced.paid), thousands(raced.orders));
        report.claim(is_met, &format!("payments on {dialect}: payers and sweepers have met"), counts);
    }
    Ok(())
}

async fn on(dialect: Dialect, orders: u64, seed: u64) -> Result<Raced, String> {
    let running = start(dialect).await?;
    let shop = Shop::new(Database::open(&running.url(), CONNECTIONS).await.map_err(said)?);
    let new = NewSale { pay_within: PAY_WITHIN, ..NewSale::of(orders as i64) };
    let sale = shop.database.create_sale(&new).await.map_err(said)?;
    let progress = Progress::new(format!("payments on {dialect}"), orders);
    let lead = AtomicI64::new(COARSE);
    let race = Arc::new(Race { shop, sale, orders, next: AtomicU64::new(0), lead, progress });
    let is_over = Arc::new(AtomicBool::new(false));
    let sweeping = [(); 2].map(|()| tokio::spawn(sweep(race.shop.clone(), Arc::clone(&is_over))));
    let mut payers = JoinSet::new();
    for payer in 0..PAYERS {
        payers.spawn(pay_on(Arc::clone(&race), Random::new(seed.wrapping_add(payer))));
    }
    let mut results = Vec::new();
    while let Some(payer) = payers.join_next().await {
        results.extend(payer.map_err(said)??);
    }
    wait_for_returns(&race, &results).await?;
    is_over.store(true, Ordering::Relaxed);
    let mut returned = 0;
    for sweeper in sweeping {
        returned += sweeper.await.map_err(said)??;
    }
    judge(&race, &results, returned).await
}

/// Returns what is over, without a pause, and says how many that were.
async fn sweep(shop: Shop, is_over: Arc<AtomicBool>) -> Result<u64, String> {
    let mut returned = 0;
    while !is_over.load(Ordering::Relaxed) {
        returned += shop.expire().await.map_err(said)?;
        yield_now().await;
    }
    Ok(returned)
}

async fn pay_on(race: Arc<Race>, mut random: Random) -> Result<Vec<WishResult>, String> {
    let mut results = Vec::new();
    loop {
        let number = race.next.fetch_add(1, Ordering::Relaxed);
        if number >= race.orders {
            return Ok(results);
        }
        let off = random.between(0, 2 * OFF as u64) as i64 - OFF;
        results.push(race.one(number, off).await?);
        race.progress.at(number + 1, format!("setting out {} µs early", race.lead.load(Ordering::Relaxed)));
    }
}

impl Race {
    /// Reserves a piece, and pays for it at the end of its time.
    async fn one(&self, number: u64, off: i64) -> Result<WishResult, String> {
        let (user, key) = (format!("buyer-{number}"), format!("key-{number}"));
        let wish = Wish { sale: self.sale, user: &user, key: &key };
        let order = match self.shop.buy(&wish, Strategy::Conditional).await.map_err(said)? {
            Outcome::Reserved { order, .. } => order,
            other => return Err(format!("{user}: {other:?}")),
        };
        if let Some(at) = expires_at(&self.shop.database, &order).await.map_err(said)? {
            wait_until(at * 1_000 - self.lead.load(Ordering::Relaxed) + off).await;
        }
        let is_paid = match self.shop.pay(&order, &user).await.map_err(said)? {
            Payment::Paid { .. } => true,
            Payment::Expired => false,
            Payment::UnknownOrder => return Err(format!("{user}: order {order} is not known")),
        };
        self.lead.fetch_add(if is_paid { -STEP } else { STEP }, Ordering::Relaxed);
        Ok(WishResult { user, key, heard: Word::Reserved(order), is_paid: Some(is_paid) })
    }
}

/// Waits for a moment, in microseconds since 1970.
async fn wait_until(moment: i64) {
    let left = || moment - unix_time().as_micros() as i64;
    if let Ok(coarse) = u64::try_from(left() - COARSE) {
        sleep(Duration::from_micros(coarse)).await;
    }
    while left() > 0 {
        yield_now().await;
    }
}

/// Waits until the sweepers have returned everything that was not paid.
async fn wait_for_returns(race: &Race, results: &[WishResult]) -> Result<(), String> {
    let paid = results.iter().filter(|result| result.is_paid == Some(true)).count() as i64;
    for _ in 0..600 {
        let tally = race.shop.database.tally(race.sale).await.map_err(said)?;
        if tally.is_some_and(|tally| tally.live <= paid) {
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
    Err("something is reserved for ever".to_owned())
}

async fn judge(race: &Race, results: &[WishResult], returned: u64) -> Result<Raced, String> {
    let database = &race.shop.database;
    let books = Ledger::books(database, race.sale).await?;
    let mut findings = books.findings();
    findings.extend(results.iter().flat_map(|result| result.contradictions(&books)));
    findings.extend(Ledger::audit(database).await?);
    let (paid, went_back) = (books.paid(), books.returned());
    if paid + went_back != race.orders || returned != went_back {
        let orders = race.orders;
        findings.push(format!("G-5: {orders} orders: {paid} paid, {went_back} returned, {returned} swept"));
    }
    let available = database.sale(race.sale).await.map_err(said)?.map(|sale| sale.available);
    if available != Some((race.orders - paid) as i64) {
        findings.push(format!("G-1: {available:?} are available, and {paid} of {} paid", race.orders));
    }
    let at_the_end = paid_at_the_end(database, race.sale, 2).await.map_err(said)?.unsigned_abs();
    Ok(Raced { orders: race.orders, paid, returned: went_back, at_the_end, findings })
}
