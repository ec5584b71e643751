//! One round: a fresh sale, buyers, trouble in the middle of it, and then the books.

use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::books::{Books, Entry, WishResult, Word};
use super::buyer::Buyer;
use super::door::{Door, Links};
use super::serving::{Serving, Stage};

/// How long it may take until every reservation is paid or returned, and until the rest is sold.
const SETTLED: Duration = Duration::from_secs(60);

/// Between two looks.
const NAP: Duration = Duration::from_millis(50);

/// Between two audits.
const EVERY: Duration = Duration::from_millis(700);

/// The books of a shop, read by connections of their own.
pub trait Ledger: Clone + Send + Sync + 'static {
    /// Makes a sale of this many pieces. Returns its number and the price of a piece.
    fn create_sale(
        &self,
        stock: i64,
        pay_within: Duration,
    ) -> impl Future<Output = Result<(i64, i64), String>> + Send;

    /// Returns the time of the database, in milliseconds.
    fn now(&self) -> impl Future<Output = Result<i64, String>> + Send;

    /// Returns what became of the stock of a sale.
    fn tally(&self, sale: i64) -> impl Future<Output = Result<Tally, String>> + Send;

    /// Returns the books of a sale.
    fn books(&self, sale: i64) -> impl Future<Output = Result<Books, String>> + Send;

    /// Returns everything that may never be and is, in all sales.
    fn audit(&self) -> impl Future<Output = Result<Vec<String>, String>> + Send;

    /// Returns the name and the version of the database.
    fn version(&self) -> impl Future<Output = Result<String, String>> + Send;

    /// Returns a signer by the secret of a shop.
    fn links(&self, secret: &str) -> Arc<dyn Links>;
}

/// What became of the stock of a sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The pieces that there were.
    pub stock: i64,
    /// The pieces that are left.
    pub available: i64,
    /// The pieces that are reserved or sold.
    pub live: i64,
    /// Those of them that are paid.
    pub paid: i64,
    /// The reservations that went back.
    pub returned: i64,
    /// The orders beyond the first of one buyer.
    pub duplicates: i64,
    /// When the last piece was reserved, in milliseconds of the database's clock.
    pub last_at: Option<i64>,
}

impl Tally {
    /// Returns how many pieces were sold that were not there.
    pub fn oversold(&self) -> i64 {
        (self.live - self.stock).max(0)
    }
}

/// What was counted in one round or in several, and what was found wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Pieces that there were.
    pub stock: u64,
    /// Those that were sold in the end.
    pub paid: u64,
    /// Reservations that went back.
    pub returned: u64,
    /// Wishes that came to an end.
    pub wishes: u64,
    /// Questions that were lost or could not be answered, and were asked again.
    pub repeated: u64,
    /// Audits.
    pub audits: u64,
    /// Guarantees that were broken, and how.
    pub findings: Vec<String>,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Figures) {
        self.stock += other.stock;
        self.paid += other.paid;
        self.returned += other.returned;
        self.wishes += other.wishes;
        self.repeated += other.repeated;
        self.audits += other.audits;
        self.findings.extend(other.findings);
    }
}

/// What is sold to whom.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Pieces.
    pub stock: i64,
    /// Who come.
    pub buyers: u32,
    /// Within which time they come.
    pub come_within: Duration,
    /// How long a piece is reserved.
    pub pay_within: Duration,
    /// How pieces are taken: by any of these, each time by another one.
    pub strategies: Vec<&'static str>,
    /// Who comes when, and does what.
    pub seed: u64,
}

/// A round that has begun.
#[derive(Debug)]
pub struct Round<L> {
    scene: Scene,
    ledger: L,
    serving: Serving,
    door: Arc<Door>,
    results: Vec<WishResult>,
    lost: Arc<AtomicU64>,
    figures: Figures,
}

impl<L: Ledger> Round<L> {
    /// Makes a sale and opens a shop for it.
    pub async fn open(stage: &Stage, ledger: &L, scene: Scene) -> Result<Round<L>, String> {
        let (serving, door) = open(stage, ledger, scene.stock, scene.pay_within).await?;
        let figures = Figures { stock: scene.stock.unsigned_abs(), ..Figures::default() };
        let (ledger, door) = (ledger.clone(), Arc::new(door));
        Ok(Round { scene, ledger, serving, door, results: Vec::new(), lost: Arc::default(), figures })
    }

    /// The sale's number.
    pub fn sale(&self) -> i64 {
        self.door.sale
    }

    /// Lets the crowd come, with trouble in the middle of it, after which the shop is open; then waits for everybody.
    pub async fn run(
        &mut self,
        trouble: impl AsyncFnOnce(&mut Serving) -> Result<(), String>,
    ) -> Result<(), String> {
        let (end, ended) = watch::channel(false);
        let auditor = tokio::spawn(audit(self.ledger.clone(), ended));
        let mut crowd = JoinSet::new();
        let mut random = Rng::with_seed(self.scene.seed);
        for number in 0..self.scene.buyers {
            let user = format!("{:x}-{:x}-{number}", self.door.sale, self.scene.seed);
            let comes_after = self.scene.come_within.mul_f64(random.f64());
            let (door, lost, strategies) = self.for_a_buyer();
            crowd.spawn(async move {
                sleep(comes_after).await;
                Buyer::new(&door, user, &strategies, &lost).visit().await
            });
        }
        let troubled = trouble(&mut self.serving).await;
        for visit in crowd.join_all().await {
            match visit {
                Ok(results) => self.results.extend(results),
                Err(finding) => self.figures.findings.push(finding),
            }
        }
        let _ = end.send(true);
        let (audits, findings) =
            auditor.await.unwrap_or_else(|error| (0, vec![format!("the auditor: {error}")]));
        self.figures.audits += audits;
        self.figures.findings.extend(findings);
        troubled
    }

    /// Waits until every reservation is over, and how many are left then; the shop returns them by itself.
    pub async fn settle(&mut self) -> Result<i64, String> {
        let started = Instant::now();
        loop {
            match self.ledger.tally(self.sale()).await {
                Ok(tally) if tally.live == tally.paid => return Ok(tally.available),
                _ if started.elapsed() < SETTLED => sleep(NAP).await,
                Ok(tally) => return Err(format!("reservations are not over after {SETTLED:?}: {tally:?}")),
                Err(problem) => return Err(problem),
            }
        }
    }

    /// Sells what is left to late buyers who pay at once, until nothing is; how long that took.
    pub async fn sell_the_rest(&mut self) -> Result<Duration, String> {
        let started = Instant::now();
        for number in 0.. {
            let user = format!("{:x}-late-{number}", self.door.sale);
            let (door, lost, strategies) = self.for_a_buyer();
            match Buyer::new(&door, user, &strategies, &lost).take().await {
                Ok(result) => self.results.push(result),
                Err(finding) => self.figures.findings.push(finding),
            }
            let tally = self.ledger.tally(self.sale()).await?;
            if tally.paid == tally.stock {
                break;
            }
            if started.elapsed() > SETTLED {
                self.figures.findings.push(format!("G-2: the rest is not sold: {tally:?}"));
                break;
            }
        }
        Ok(started.elapsed())
    }

    /// Compares the replies to all buyers with the books, and returns the figures and findings.
    pub async fn close(mut self) -> Result<Figures, String> {
        self.ask_everybody_again().await;
        let books = self.ledger.books(self.sale()).await?;
        self.figures.findings.extend(books.findings());
        for result in &self.results {
            self.figures.findings.extend(result.contradictions(&books));
        }
        self.figures.findings.extend(self.ledger.audit().await?);
        self.figures.audits += 1;
        self.figures.paid = books.paid();
        self.figures.returned = books.returned();
        self.figures.wishes = self.results.len() as u64;
        self.figures.repeated = self.lost.load(Ordering::Relaxed);
        if books.count(|entry| entry == Entry::Reserved) > 0 {
            self.figures.findings.push("G-5: something is reserved for ever".to_owned());
        }
        self.serving.kill().await.map_err(|error| error.to_string())?;
        Ok(self.figures)
    }

    async fn ask_everybody_again(&mut self) {
        for result in self.results.iter().filter(|result| result.heard != Word::SoldOut) {
            let (door, lost, strategies) = self.for_a_buyer();
            let mut buyer = Buyer::new(&door, result.user.clone(), &strategies, &lost);
            if let Err(finding) = buyer.ask_again(result).await {
                self.figures.findings.push(finding);
            }
        }
    }

    fn for_a_buyer(&self) -> (Arc<Door>, Arc<AtomicU64>, Vec<&'static str>) {
        (Arc::clone(&self.door), Arc::clone(&self.lost), self.scene.strategies.clone())
    }
}

/// Makes a sale and opens a shop for it, with the way into it.
pub async fn open<L: Ledger>(
    stage: &Stage,
    ledger: &L,
    stock: i64,
    pay_within: Duration,
) -> Result<(Serving, Door), String> {
    let (sale, price_cents) = ledger.create_sale(stock, pay_within).await?;
    let serving = Serving::start(stage, sale).await.map_err(|error| error.to_string())?;
    let door = Door {
        shop: serving.address(),
        sale,
        price_cents,
        pay_within: i64::try_from(pay_within.as_millis()).unwrap_or(i64::MAX),
        links: ledger.links(&stage.secret),
        opened_at: ledger.now().await?,
        opened: Instant::now(),
    };
    Ok((serving, door))
}

/// Looks into the books again and again, whatever happens to the shop. A database that is away has nothing to be found in.
async fn audit(ledger: impl Ledger, mut ended: watch::Receiver<bool>) -> (u64, Vec<String>) {
    let (mut audits, mut findings) = (0, Vec::new());
    loop {
        if let Ok(found) = ledger.audit().await {
            audits += 1;
            findings.extend(found);
        }
        if timeout(EVERY, ended.wait_for(|is_over| *is_over)).await.is_ok() {
            return (audits, findings);
        }
    }
}
