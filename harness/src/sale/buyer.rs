//! A buyer that asks with the same key until there is a final answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use tokio::time::{Instant, sleep};

use super::books::{WishResult, Word};
use super::door::{Answer, Door};

/// The timeout of a buyer without a final reply, which is then a fault of the shop.
const NEVER: Duration = Duration::from_secs(90);

/// How often a buyer asks again after "sold out": something may come back.
const HOPES: u32 = 3;

/// A buyer who wants one piece.
#[derive(Debug)]
pub struct Buyer<'a> {
    door: &'a Door,
    user: String,
    strategies: &'a [&'static str],
    random: Rng,
    /// How often something was lost.
    lost: &'a AtomicU64,
}

impl<'a> Buyer<'a> {
    /// One who takes any of these strategies, each time another one.
    pub fn new(
        door: &'a Door,
        user: String,
        strategies: &'a [&'static str],
        lost: &'a AtomicU64,
    ) -> Buyer<'a> {
        let random = Rng::with_seed(
            user.bytes().fold(0_u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte))),
        );
        Buyer { door, user, strategies, random, lost }
    }

    /// Buys; then pays at once, or about when it is too late, or never; and perhaps tries once more after that.
    pub async fn visit(&mut self) -> Result<Vec<WishResult>, String> {
        let mut results = Vec::new();
        for number in 0..2 {
            let key = format!("{}-{number}", self.user);
            let before = results.last().and_then(WishResult::order).map(str::to_owned);
            let heard = self.buy(&key, before.as_deref()).await?;
            let order = heard.order().map(str::to_owned);
            let mut wish = WishResult { user: self.user.clone(), key, heard, is_paid: None };
            if let Some(order) = order {
                wish.is_paid = self.perhaps_pay(&wish.key, &order).await?;
            }
            let is_content = wish.is_paid != Some(false) && wish.heard != Word::Expired;
            results.push(wish);
            if is_content {
                break;
            }
        }
        Ok(results)
    }

    /// Buys and pays at once.
    pub async fn take(&mut self) -> Result<WishResult, String> {
        let key = format!("{}-late", self.user);
        let heard = self.buy(&key, None).await?;
        let is_paid = match &heard {
            Word::Reserved(order) => Some(self.pay(order).await?),
            Word::Expired | Word::SoldOut => None,
        };
        Ok(WishResult { user: self.user.clone(), key, heard, is_paid })
    }

    /// Asks until something final is said. An order that it had before may still be in the way.
    pub async fn buy(&mut self, key: &str, before: Option<&str>) -> Result<Word, String> {
        let started = Instant::now();
        let mut hopes = 0;
        while started.elapsed() < NEVER {
            let strategy = self.strategies[self.random.usize(..self.strategies.len())];
            match self.door.buy(&self.user, key, strategy).await {
                Err(_) => self.has_lost(),
                Ok(answer) if answer.body.is_null() || answer.is(503, "unavailable") => self.has_lost(),
                Ok(answer) if answer.is(409, "conflict") || answer.is(429, "paused") => {}
                Ok(answer) if answer.is(409, "already_bought") && answer.order() == before => {}
                Ok(answer) if answer.is(410, "sold_out") && hopes < HOPES => hopes += 1,
                Ok(answer) => return self.final_word(key, &answer),
            }
            self.nap().await;
        }
        Err(format!("G-4: {} by key {key}: no final answer within {NEVER:?}", self.user))
    }

    /// Asks once more by a key that has come to an order: the same has to be said.
    pub async fn ask_again(&mut self, result: &WishResult) -> Result<Word, String> {
        let heard = self.buy(&result.key, None).await?;
        let is_same = match (&result.heard, result.is_paid, &heard) {
            (Word::Reserved(one), _, Word::Reserved(other)) => one == other,
            (Word::Reserved(_), None | Some(false), Word::Expired) => true,
            (Word::Expired, _, Word::Expired) => true,
            // What went back is not theirs any more: a hint may spare the database that question.
            (_, None | Some(false), Word::SoldOut) => self.strategies.contains(&"redis"),
            _ => false,
        };
        is_same.then_some(()).ok_or_else(|| format!("G-3: {result:?} asked again and got {heard:?}"))?;
        Ok(heard)
    }

    fn final_word(&self, key: &str, answer: &Answer) -> Result<Word, String> {
        match answer.order() {
            Some(order) if answer.is(201, "reserved") => Ok(Word::Reserved(order.to_owned())),
            _ if answer.is(410, "expired") => Ok(Word::Expired),
            _ if answer.is(410, "sold_out") => Ok(Word::SoldOut),
            _ => Err(format!("G-3: {} by key {key}: got {answer:?}", self.user)),
        }
    }

    /// Half pay at once, a quarter about when it is too late, a quarter never.
    async fn perhaps_pay(&mut self, key: &str, order: &str) -> Result<Option<bool>, String> {
        let result = WishResult {
            user: self.user.clone(),
            key: key.to_owned(),
            heard: Word::Reserved(order.to_owned()),
            is_paid: None,
        };
        let again = if self.random.bool() { Some(self.ask_again(&result).await?) } else { None };
        let late = self.door.pay_within.unsigned_abs();
        match self.random.u8(..4) {
            0 => return Ok(None),
            1 => sleep(Duration::from_millis(self.random.u64(late / 2..=late * 5 / 4))).await,
            _ => {}
        }
        let is_paid = self.pay(order).await?;
        if is_paid && again.is_some_and(|again| again.order().is_none()) {
            return Err(format!("G-3: {} held order {order}, and then got another reply", self.user));
        }
        if self.random.bool() && self.pay(order).await? != is_paid {
            return Err(format!(
                "G-5: {} paid order {order} twice, and got two different replies",
                self.user
            ));
        }
        Ok(Some(is_paid))
    }

    /// Pays until something final is said: whether it is paid.
    async fn pay(&mut self, order: &str) -> Result<bool, String> {
        let started = Instant::now();
        while started.elapsed() < NEVER {
            match self.door.pay(order, &self.user).await {
                Err(_) => self.has_lost(),
                Ok(answer) if answer.body.is_null() || answer.is(503, "unavailable") => self.has_lost(),
                Ok(answer) if answer.is(410, "expired") => return Ok(false),
                Ok(answer)
                    if answer.is(200, "paid") && answer.body["charged_cents"] == self.door.price_cents =>
                {
                    return Ok(true);
                }
                Ok(answer) => return Err(format!("G-5: {} paid {order}: got {answer:?}", self.user)),
            }
            self.nap().await;
        }
        Err(format!("G-5: {} paid {order}: no final answer within {NEVER:?}", self.user))
    }

    fn has_lost(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    async fn nap(&mut self) {
        sleep(Duration::from_millis(self.random.u64(5..=60))).await;
    }
}
