//! What buyers were told, and whether the books agree.

use super::books::{Books, Entry};

/// What a wish came to, as far as its buyer knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// This order is yours.
    Reserved(String),
    /// You had one, did not pay in time, and it went back.
    Expired,
    /// Nothing is left.
    SoldOut,
}

impl Heard {
    /// The order that was named.
    pub fn order(&self) -> Option<&str> {
        match self {
            Heard::Reserved(order) => Some(order),
            Heard::Expired | Heard::SoldOut => None,
        }
    }
}

/// What one wish of a buyer was told in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Who.
    pub user: String,
    /// By which key.
    pub key: String,
    /// What it came to.
    pub heard: Heard,
    /// Whether it was paid, if it was tried: told "paid", or told "expired".
    pub is_paid: Option<bool>,
}

impl Told {
    /// The order of which this buyer was told.
    pub fn order(&self) -> Option<&str> {
        self.heard.order()
    }

    /// What the books say otherwise; they are read when everything is settled.
    pub fn contradictions(&self, books: &Books) -> Vec<String> {
        let found = match &self.heard {
            Heard::Reserved(order) => self.of_order(order, books),
            Heard::Expired => match books.of_key(&self.user, &self.key) {
                Some((_, Entry::Returned)) => None,
                other => Some(format!("G-3: was told that it expired, and the books say {other:?}")),
            },
            Heard::SoldOut => books
                .of_key(&self.user, &self.key)
                .map(|other| format!("G-3: was told that all is sold, and the books say {other:?}")),
        };
        let named = |text| format!("{} by key {}: {text}", self.user, self.key);
        found.into_iter().map(named).collect()
    }

    fn of_order(&self, order: &str, books: &Books) -> Option<String> {
        let Some(entry) = books.entry(order, &self.user, &self.key) else {
            return Some(format!("G-4: was told of order {order}, and the books do not have it"));
        };
        match (self.is_paid, entry) {
            (Some(true), Entry::Paid { cents }) if cents == books.price_cents() => None,
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
