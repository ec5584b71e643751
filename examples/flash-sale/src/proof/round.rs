//! One round: a fresh sale, a crowd, trouble in the middle of it, and then the books.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::auditor::Auditor;
use super::books::{Books, Entry};
use super::buyer::Buyer;
use super::door::Door;
use super::figures::Figures;
use super::told::{Heard, Told};
use crate::database::{Database, Fault};
use crate::link::Signer;
use crate::sale::NewSale;
use crate::serving::{Serving, Stage};
use crate::strategy::Strategy;

/// For how many milliseconds links are good: longer than any round.
const LINK_LIFE: i64 = 10 * 60 * 1000;

/// How long it may take until every reservation is paid or returned, and until the rest is sold.
const SETTLED: Duration = Duration::from_secs(60);

/// Between two looks.
const NAP: Duration = Duration::from_millis(50);

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
    pub strategies: Vec<Strategy>,
    /// Who comes when, and does what.
    pub seed: u64,
}

/// A round that has begun.
#[derive(Debug)]
pub struct Round {
    scene: Scene,
    database: Database,
    serving: Serving,
    door: Arc<Door>,
    told: Vec<Told>,
    lost: Arc<AtomicU64>,
    figures: Figures,
}

impl Round {
    /// Makes a sale and opens a shop for it. The database is that of the shop, by connections of its own.
    pub async fn open(stage: &Stage, database: &Database, scene: Scene) -> io::Result<Round> {
        let new = NewSale { pay_within: scene.pay_within, ..NewSale::of(scene.stock) };
        let sale = database.create_sale(&new).await.map_err(io::Error::other)?;
        let now = database.now().await.map_err(io::Error::other)?;
        let serving = Serving::start(stage, sale).await?;
        let door = Door {
            shop: serving.address(),
            sale,
            price_cents: new.price_cents,
            pay_within: i64::try_from(scene.pay_within.as_millis()).map_err(io::Error::other)?,
            signer: Signer::new(&stage.secret),
            until: now + LINK_LIFE,
        };
        let figures = Figures { stock: scene.stock.unsigned_abs(), ..Figures::default() };
        let (database, door) = (database.clone(), Arc::new(door));
        Ok(Round { scene, database, serving, door, told: Vec::new(), lost: Arc::default(), figures })
    }

    /// The sale's number.
    pub fn sale(&self) -> i64 {
        self.door.sale
    }

    /// Lets the crowd come, with trouble in the middle of it, after which the shop is open; then waits for everybody.
    pub async fn run(&mut self, trouble: impl AsyncFnOnce(&mut Serving) -> io::Result<()>) -> io::Result<()> {
        let auditor = Auditor::start(self.database.clone());
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
                Ok(told) => self.told.extend(told),
                Err(finding) => self.figures.findings.push(finding),
            }
        }
        let (audits, findings) = auditor.finish().await;
        self.figures.audits += audits;
        self.figures.findings.extend(findings);
        troubled
    }

    /// Waits until every reservation is over, and how many are left then; the shop returns them by itself.
    pub async fn settle(&mut self) -> io::Result<i64> {
        let started = Instant::now();
        loop {
            match self.database.tally(self.sale()).await {
                Ok(Some(tally)) if tally.live == tally.paid => return Ok(tally.available),
                _ if started.elapsed() < SETTLED => sleep(NAP).await,
                Ok(tally) => return Err(unsettled(tally)),
                Err(fault) => return Err(io::Error::other(fault)),
            }
        }
    }

    /// Sells what is left to late buyers who pay at once, until nothing is; how long that took.
    pub async fn sell_the_rest(&mut self) -> io::Result<Duration> {
        let started = Instant::now();
        for number in 0.. {
            let user = format!("{:x}-late-{number}", self.door.sale);
            let (door, lost, strategies) = self.for_a_buyer();
            match Buyer::new(&door, user, &strategies, &lost).take().await {
                Ok(told) => self.told.push(told),
                Err(finding) => self.figures.findings.push(finding),
            }
            let tally = self.database.tally(self.sale()).await.map_err(io::Error::other)?;
            match tally {
                Some(tally) if tally.paid == tally.stock => break,
                tally if started.elapsed() > SETTLED => {
                    self.figures.findings.push(format!("G-2: the rest is not sold: {tally:?}"));
                    break;
                }
                _ => {}
            }
        }
        Ok(started.elapsed())
    }

    /// Compares what everybody was told with the books, and gives what was counted and found.
    pub async fn close(mut self) -> io::Result<Figures> {
        self.ask_everybody_again().await;
        let books = self.books().await?;
        self.figures.findings.extend(books.findings());
        for told in &self.told {
            self.figures.findings.extend(told.contradictions(&books));
        }
        let findings = self.database.audit().await.map_err(io::Error::other)?;
        self.figures.findings.extend(findings.iter().map(|finding| format!("audit: {}", finding.wrong)));
        self.figures.audits += 1;
        self.figures.paid = books.paid();
        self.figures.returned = books.returned();
        self.figures.wishes = self.told.len() as u64;
        self.figures.repeated = self.lost.load(Ordering::Relaxed);
        if books.count(|entry| entry == Entry::Reserved) > 0 {
            self.figures.findings.push("G-5: something is reserved for ever".to_owned());
        }
        self.serving.kill().await?;
        Ok(self.figures)
    }

    async fn ask_everybody_again(&mut self) {
        for told in self.told.iter().filter(|told| told.heard != Heard::SoldOut) {
            let (door, lost, strategies) = self.for_a_buyer();
            let mut buyer = Buyer::new(&door, told.user.clone(), &strategies, &lost);
            if let Err(finding) = buyer.ask_again(told).await {
                self.figures.findings.push(finding);
            }
        }
    }

    async fn books(&self) -> io::Result<Books> {
        Books::read(&self.database, self.sale()).await.map_err(io::Error::other)
    }

    fn for_a_buyer(&self) -> (Arc<Door>, Arc<AtomicU64>, Vec<Strategy>) {
        (Arc::clone(&self.door), Arc::clone(&self.lost), self.scene.strategies.clone())
    }
}

fn unsettled(tally: impl std::fmt::Debug) -> io::Error {
    io::Error::other(Fault::unfit(format!("reservations are not over after {SETTLED:?}: {tally:?}")))
}
