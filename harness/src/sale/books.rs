//! The books of a sale, row by row, and whether they agree with the replies to buyers.

use std::collections::{HashMap, HashSet};

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It waits for its payment.
    Reserved,
    /// It is sold.
    Paid {
        /// For this.
        cents: i64,
    },
    /// It went back.
    Returned,
    /// What may never be: a payment without a sale, or a sale without a payment.
    Wrong,
}

/// An order, as the books have it.
#[derive(Clone, Debug)]
pub struct Line {
    /// The buyer.
    pub user: String,
    /// The key of the wish.
    pub key: String,
    /// What became of it.
    pub entry: Entry,
}

/// All orders that a sale ever had, read while nothing is written.
#[derive(Clone, Debug)]
pub struct Books {
    /// The pieces that there were.
    pub stock: i64,
    /// The pieces that are neither reserved nor sold.
    pub available: i64,
    /// The price of one piece.
    pub price_cents: i64,
    /// The orders, by their numbers.
    pub lines: HashMap<String, Line>,
}

impl Books {
    /// What became of an order of this buyer, by this key.
    pub fn entry(&self, order: &str, user: &str, key: &str) -> Option<Entry> {
        self.lines.get(order).filter(|line| line.user == user && line.key == key).map(|line| line.entry)
    }

    /// The order that a key came to.
    pub fn of_key(&self, user: &str, key: &str) -> Option<(&str, Entry)> {
        let found = self.lines.iter().find(|(_, line)| line.user == user && line.key == key);
        found.map(|(order, line)| (order.as_str(), line.entry))
    }

    /// How many orders are as this says.
    pub fn count(&self, is_so: impl Fn(Entry) -> bool) -> u64 {
        self.lines.values().filter(|line| is_so(line.entry)).count() as u64
    }

    /// How many are paid.
    pub fn paid(&self) -> u64 {
        self.count(|entry| matches!(entry, Entry::Paid { .. }))
    }

    /// How many went back.
    pub fn returned(&self) -> u64 {
        self.count(|entry| entry == Entry::Returned)
    }

    /// Returns what is wrong with them, whatever the replies to buyers.
    pub fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let live: Vec<_> = self.lines.values().filter(|line| line.entry != Entry::Returned).collect();
        let Books { stock, available, price_cents, .. } = *self;
        let (sold, paid) = (live.len() as i64, self.paid() as i64);
        if available < 0 || available + sold != stock {
            findings.push(format!("G-1: {sold} of {stock} are sold or reserved, and {available} available"));
        }
        let users: HashSet<_> = live.iter().map(|line| &line.user).collect();
        if users.len() != live.len() {
            findings.push(format!("G-3: {} orders belong to {} buyers", live.len(), users.len()));
        }
        let keys: HashSet<_> = self.lines.values().map(|line| (&line.user, &line.key)).collect();
        if keys.len() != self.lines.len() {
            findings.push(format!("G-3: {} orders were made by {} keys", self.lines.len(), keys.len()));
        }
        let wrong = self.count(|entry| entry == Entry::Wrong);
        if wrong > 0 {
            findings.push(format!("G-5: of {wrong} orders, state and payment contradict each other"));
        }
        let money: i64 = self.lines.values().map(|line| line.entry.cents()).sum();
        if money != paid * price_cents {
            findings.push(format!("G-5: {money} cents were charged for {paid} pieces of {price_cents}"));
        }
        findings
    }
}

impl Entry {
    fn cents(self) -> i64 {
        if let Entry::Paid { cents } = self { cents } else { 0 }
    }
}

/// What a wish came to, as far as its buyer knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// This order is yours.
    Reserved(String),
    /// You had one, did not pay in time, and it went back.
    Expired,
    /// Nothing is left.
    SoldOut,
}

impl Word {
    /// The order that was named.
    pub fn order(&self) -> Option<&str> {
        match self {
            Word::Reserved(order) => Some(order),
            Word::Expired | Word::SoldOut => None,
        }
    }
}

/// The final reply to one wish of a buyer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WishResult {
    /// Who.
    pub user: String,
    /// By which key.
    pub key: String,
    /// What it came to.
    pub heard: Word,
    /// Whether it was paid, if it was tried: the reply was "paid" or "expired".
    pub is_paid: Option<bool>,
}

impl WishResult {
    /// Returns the order that the reply named.
    pub fn order(&self) -> Option<&str> {
        self.heard.order()
    }

    /// What the books say otherwise; they are read when everything is settled.
    pub fn contradictions(&self, books: &Books) -> Vec<String> {
        let found = match &self.heard {
            Word::Reserved(order) => self.of_order(order, books),
            Word::Expired => match books.of_key(&self.user, &self.key) {
                Some((_, Entry::Returned)) => None,
                other => Some(format!("G-3: got \"expired\", and the books say {other:?}")),
            },
            Word::SoldOut => books
                .of_key(&self.user, &self.key)
                .map(|other| format!("G-3: got \"sold out\", and the books say {other:?}")),
        };
        let named = |text| format!("{} by key {}: {text}", self.user, self.key);
        found.into_iter().map(named).collect()
    }

    fn of_order(&self, order: &str, books: &Books) -> Option<String> {
        let Some(entry) = books.entry(order, &self.user, &self.key) else {
            return Some(format!("G-4: got order {order}, and the books do not have it"));
        };
        match (self.is_paid, entry) {
            (Some(true), Entry::Paid { cents }) if cents == books.price_cents => None,
            (Some(true), other) => Some(format!("G-5: has paid order {order}, and the books say {other:?}")),
            (Some(false), Entry::Returned) | (None, Entry::Returned) => None,
            (Some(false), other) => {
                Some(format!("G-5: could not pay order {order} in time, and the books say {other:?}"))
            }
            (None, other) => {
                Some(format!("G-5: has never paid order {order}, and the books say {other:?} in the end"))
            }
        }
    }
}
