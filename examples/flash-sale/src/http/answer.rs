//! Replies: a status, the result in one word, and a message with the next step.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Map, Value};
use tidegate_support::{ceil_ms, ceil_seconds};

use crate::database::Fault;
use crate::link::Signer;
use crate::outcome::Outcome;
use crate::payment::Payment;

/// The header field of a repeated reply to the same purchase request.
const REPLAYED: &str = "idempotent-replayed";

pub(crate) const SOLD_OUT: &str =
    "sold out; what others do not pay for in time comes back, so look again later";
pub(crate) const UNAVAILABLE: &str =
    "the shop cannot say at the moment; repeat the same request, nothing is done twice";

/// A reply, sent as a whole or as the last line of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: StatusCode,
    body: Map<String, Value>,
    retry_after: Option<Duration>,
    is_replayed: bool,
}

impl Answer {
    /// Returns a reply with its result in one word.
    pub(crate) fn new(status: StatusCode, result: &str) -> Answer {
        let answer = Answer { status, body: Map::new(), retry_after: None, is_replayed: false };
        answer.with("result", result)
    }

    /// Sets the message with the next step.
    pub(crate) fn message(self, text: impl Into<String>) -> Answer {
        self.with("message", text.into())
    }

    /// Adds a field.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Answer {
        self.body.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the time to the next try.
    pub(crate) fn retry_after(mut self, wait: Duration) -> Answer {
        self.retry_after = Some(wait);
        self.with("retry_after_ms", ceil_ms(wait))
    }

    /// Returns the last line of a stream, which contains the status.
    pub(crate) fn into_line(self) -> String {
        let mut body = Map::new();
        body.insert("status".to_owned(), self.status.as_u16().into());
        body.extend(self.body);
        format!("{}\n", Value::Object(body))
    }

    /// Returns the reply to a purchase request.
    pub(crate) fn to_wish(signer: &Signer, user: &str, outcome: Result<Outcome, Fault>) -> Answer {
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(_) => return unavailable(),
        };
        match outcome {
            Outcome::Reserved { order, pay_within, left, replayed } => {
                let pay = signer.pay_url(&order, user);
                let mut answer = Answer::new(StatusCode::CREATED, "reserved")
                    .with("order", order)
                    .with("left", left)
                    .with("pay", pay)
                    .with("pay_within_ms", pay_within);
                answer.is_replayed = replayed;
                answer
            }
            Outcome::AlreadyBought { order, pay_within } => {
                let pay = signer.pay_url(&order, user);
                let answer = Answer::new(StatusCode::CONFLICT, "already_bought")
                    .message(format!("you have one already: order {order}; there is one for each buyer"))
                    .with("order", order);
                match pay_within {
                    Some(pay_within) => answer.with("pay", pay).with("pay_within_ms", pay_within),
                    None => answer,
                }
            }
            Outcome::Conflict { left } => Answer::new(StatusCode::CONFLICT, "conflict")
                .message(format!("another buyer was faster, and {left} are left; try again with the same key"))
                .with("left", left),
            Outcome::SoldOut => {
                Answer::new(StatusCode::GONE, "sold_out").message(SOLD_OUT).with("left", 0)
            }
            Outcome::NotOpen { opens_in } => not_open(opens_in),
            Outcome::Over => over(),
            Outcome::Expired => Answer::new(StatusCode::GONE, "expired").message(
                "what was reserved under this key was not paid in time and went back; buy again with a new key",
            ),
            Outcome::Paused { wait } => {
                let why = "what you reserved was not paid in time, so others come first";
                wait_for(span(wait), "paused", why)
            }
            Outcome::KeyUsed { sale } => Answer::new(StatusCode::UNPROCESSABLE_ENTITY, "key_used")
                .message(format!("this key was used for sale {sale}; write a new one for this sale")),
            Outcome::UnknownSale => unknown_sale(),
        }
    }

    /// Returns the reply to a payment.
    pub(crate) fn to_payment(order: &str, payment: &Result<Payment, Fault>) -> Answer {
        match payment {
            Ok(Payment::Paid { cents, again }) => Answer::new(StatusCode::OK, "paid")
                .with("order", order)
                .with("charged_cents", *cents)
                .with("again", *again),
            Ok(Payment::Expired) => Answer::new(StatusCode::GONE, "expired")
                .message("the time to pay is over and the piece went back on sale; nothing was charged")
                .with("order", order),
            Ok(Payment::UnknownOrder) => Answer::new(StatusCode::NOT_FOUND, "unknown_order")
                .message(format!("order {order}: you have no such order; look at the link that you got")),
            Err(_) => unavailable(),
        }
    }

    /// Returns the whole response.
    pub(crate) fn into_json(self) -> axum::http::Response<Bytes> {
        let mut response = axum::http::Response::new(Value::Object(self.body).to_string().into());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds(wait)));
        }
        if self.is_replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        self.into_json().map(Body::from)
    }
}

/// Returns the reply after a fault of the database, whose result may be unknown.
pub(crate) fn unavailable() -> Answer {
    Answer::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        .message(UNAVAILABLE)
        .retry_after(Duration::from_secs(1))
}

/// Returns the reply to a request that may be repeated after this wait; `why` begins the message.
pub(crate) fn wait_for(wait: Duration, result: &str, why: &str) -> Answer {
    Answer::new(StatusCode::TOO_MANY_REQUESTS, result)
        .message(format!("{why}; try again in {} s", seconds(wait)))
        .retry_after(wait)
}

pub(crate) fn not_open(opens_in: i64) -> Answer {
    Answer::new(StatusCode::FORBIDDEN, "not_open")
        .message(format!("the sale is not open yet; come back in {} s", seconds(span(opens_in))))
        .with("opens_in_ms", opens_in)
}

pub(crate) fn over() -> Answer {
    Answer::new(StatusCode::GONE, "over")
        .message("the sale is over; look at the shop's page for the next one")
}

pub(crate) fn unknown_sale() -> Answer {
    Answer::new(StatusCode::NOT_FOUND, "unknown_sale")
        .message("there is no such sale; GET /api/sale says which one there is")
}

pub(crate) fn unknown_path() -> Answer {
    Answer::new(StatusCode::NOT_FOUND, "unknown_path")
        .message("there is nothing here; the shop's page is at /")
}

pub(crate) fn wrong_method() -> Answer {
    Answer::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method")
        .message("this address is asked in another way; see the field Allow")
}

pub(crate) fn bad_link(why: &str) -> Answer {
    Answer::new(StatusCode::FORBIDDEN, "bad_link").message(why)
}

/// Returns the reply to an invalid request; `why` contains the remedy.
pub(crate) fn unprocessable(result: &str, why: impl Into<String>) -> Answer {
    Answer::new(StatusCode::UNPROCESSABLE_ENTITY, result).message(why)
}

/// Returns a time of so many milliseconds.
pub(crate) fn span(milliseconds: i64) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}

/// Returns whole seconds, rounded up, and at least one.
pub(crate) fn seconds(wait: Duration) -> u64 {
    ceil_seconds(wait).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_to(outcome: Outcome) -> Answer {
        Answer::to_wish(&Signer::new("secret"), "ana", Ok(outcome))
    }

    #[test]
    fn every_outcome_has_its_status_its_word_and_what_to_do_next() {
        let order = || "7".to_owned();
        for (outcome, status, result) in [
            (Outcome::AlreadyBought { order: order(), pay_within: Some(5) }, 409, "already_bought"),
            (Outcome::Conflict { left: 3 }, 409, "conflict"),
            (Outcome::SoldOut, 410, "sold_out"),
            (Outcome::Over, 410, "over"),
            (Outcome::Expired, 410, "expired"),
            (Outcome::NotOpen { opens_in: 1500 }, 403, "not_open"),
            (Outcome::UnknownSale, 404, "unknown_sale"),
            (Outcome::KeyUsed { sale: 2 }, 422, "key_used"),
            (Outcome::Paused { wait: 1500 }, 429, "paused"),
        ] {
            let answer = answer_to(outcome);
            assert_eq!((answer.status.as_u16(), answer.body["result"].as_str()), (status, Some(result)));
            assert!(answer.body["message"].is_string(), "{result}");
        }
        assert_eq!((seconds(Duration::ZERO), seconds(Duration::from_millis(1001))), (1, 2));
        assert_eq!(answer_to(Outcome::Conflict { left: 3 }).body["left"], 3);
        assert_eq!(answer_to(Outcome::NotOpen { opens_in: 1500 }).body["opens_in_ms"], 1500);
        assert_eq!(answer_to(Outcome::Paused { wait: 1500 }).body["retry_after_ms"], 1500);
        let reserved = Outcome::Reserved { order: order(), pay_within: 9, left: 2, replayed: true };
        let line: Value = serde_json::from_str(&answer_to(reserved).into_line()).unwrap();
        assert_eq!(
            (&line["status"], &line["left"], &line["pay_within_ms"]),
            (&201.into(), &2.into(), &9.into())
        );
        assert!(line["pay"].as_str().unwrap().starts_with("/api/orders/7/pay?user=ana&sign="));
    }
}
