//! A purchase request on its way through the shop: looked up, counted by its address, executed.

use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;

use super::answer::{Answer, span, unavailable, wait_for};
use super::app::App;
use super::receive::{Buyer, Wanted};
use super::tasks::failed;
use crate::database::Fault;
use crate::limits::Limiting;
use crate::link::LONGEST;
use crate::outcome::{Outcome, Prospect, Wish};
use crate::queue::{Claim, Wanted as PlaceWanted};

/// A validated purchase request.
#[derive(Debug)]
pub(super) struct Purchase {
    pub(super) app: App,
    pub(super) sale: i64,
    pub(super) buyer: Buyer,
    pub(super) key: String,
    pub(super) wanted: Wanted,
}

impl Purchase {
    /// Returns its request for a place in the queue.
    pub(super) fn place(&self) -> PlaceWanted<'_> {
        PlaceWanted { sale: self.sale, user: &self.buyer.user, address: &self.buyer.address }
    }

    /// Returns the reply if no piece is to be taken: a buyer who has an order, or may have none, need not wait for a
    /// turn.
    ///
    /// The number of concurrent lookups is limited, so that a crowd before the queue leaves connections to buyers whose
    /// turn has come.
    pub(super) async fn settled(&self) -> Option<Answer> {
        match self.look().await {
            Ok(Prospect::Open { .. }) => None,
            Ok(Prospect::Settled(outcome)) => Some(self.answer(Ok(outcome))),
            Err(fault) => Some(self.answer(Err(fault))),
        }
    }

    /// Returns the reply to a request whose turn was used by another request of the same buyer.
    pub(super) async fn after_another(&self) -> Answer {
        let prospect = self.look().await;
        self.answer(prospect.map(|prospect| match prospect {
            Prospect::Settled(outcome) => outcome,
            Prospect::Open { left } => Outcome::Conflict { left },
        }))
    }

    /// Buys. Once started, it completes even if the client disconnects: a request with the same key then gets the
    /// outcome.
    pub(super) async fn carry_out(self, claim: Option<Claim>) -> Answer {
        let task = tokio::spawn(async move {
            let answer = self.reserve().await;
            drop(claim);
            answer
        });
        task.await.unwrap_or_else(|_| unavailable())
    }

    /// Denies the request, which may try again after this wait.
    pub(super) fn refused(&self, wait: Duration, headers: &HeaderMap) -> Response {
        self.app.degraded.limited(self.sale, wait, headers).map(Into::into)
    }

    async fn reserve(&self) -> Answer {
        if self.wanted.limiting == Limiting::Off {
            return self.answer(self.app.shop.buy(&self.wish(), self.wanted.strategy).await);
        }
        let take = match self.app.reservations.take(&self.buyer.address, self.pay_within()) {
            Ok(take) => take,
            Err(wait) => return self.without_reserving(wait).await,
        };
        let outcome = self.app.shop.buy(&self.wish(), self.wanted.strategy).await;
        // After any other fault a piece may be reserved, so the reservation stays counted.
        let is_reserved = match &outcome {
            Ok(outcome) => outcome.is_new(),
            Err(fault) => !fault.is_in_the_way(),
        };
        if !is_reserved {
            take.refund();
        }
        self.answer(outcome)
    }

    /// Returns the reply to an address that may reserve nothing now: its earlier reservations stay valid.
    async fn without_reserving(&self, wait: Duration) -> Answer {
        if let Some(answer) = self.settled().await {
            return answer;
        }
        self.app.shop.meter.refused();
        wait_for(wait, "limited", "this address has reserved as many pieces as it may")
            .with("left", self.app.seen.left(self.sale))
    }

    async fn look(&self) -> Result<Prospect, Fault> {
        let _permit = self.app.looks.acquire().await;
        self.app.shop.look(&self.wish()).await
    }

    fn wish(&self) -> Wish<'_> {
        Wish { sale: self.sale, user: &self.buyer.user, key: &self.key }
    }

    /// Returns the time for which a piece is reserved; for a sale that was not read yet, the maximum validity of a
    /// link.
    fn pay_within(&self) -> Duration {
        span(self.app.seen.sale(self.sale).map_or(LONGEST, |view| view.sale.pay_within))
    }

    fn answer(&self, outcome: Result<Outcome, Fault>) -> Answer {
        if let Err(fault) = &outcome {
            failed("buying", fault);
        }
        Answer::to_wish(&self.app.settings.signer, &self.buyer.user, outcome)
    }
}
