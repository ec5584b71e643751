//! The parts of a purchase request: an idempotency key, and a quantity of one.

use std::error::Error;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use http_body_util::LengthLimitError;
use serde_json::Value;
use tokio::time::timeout;

use super::answer::{Answer, unprocessable};

/// The maximum length of a body, in bytes.
const MOST: usize = 4096;

/// The timeout of a body.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

const KEY: &str = "idempotency-key";

/// The maximum length of a key.
const LONGEST_KEY: usize = 64;

/// Returns the idempotency key, which identifies repetitions of the same purchase request.
pub(super) fn key(headers: &HeaderMap) -> Result<String, Answer> {
    let mut values = headers.get_all(KEY).iter();
    let what = match (values.next(), values.next()) {
        (None, _) => "is missing",
        (Some(_), Some(_)) => "is there twice",
        (Some(value), None) => match value.to_str() {
            Ok(key) if is_key(key) => return Ok(key.to_owned()),
            _ => "cannot be read",
        },
    };
    let remedy = "write 1 to 64 printable ASCII characters, the same in every try of one wish";
    Err(unprocessable("bad_key", format!("Idempotency-Key {what}; {remedy}")))
}

fn is_key(key: &str) -> bool {
    (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Reads the body, which may ask for one piece and nothing else.
pub(super) async fn one_piece(body: Body) -> Result<(), Answer> {
    let failure = |status, result, why| Err(Answer::new(status, result).message(why));
    match timeout(READ_TIMEOUT, to_bytes(body, MOST)).await {
        Ok(Ok(bytes)) => quantity(&bytes),
        Ok(Err(error)) if error.source().is_some_and(|source| source.is::<LengthLimitError>()) => {
            let why = "the body is longer than 4096 bytes; write {\"quantity\":1}";
            failure(StatusCode::PAYLOAD_TOO_LARGE, "too_large", why)
        }
        Ok(Err(_)) => failure(StatusCode::BAD_REQUEST, "bad_body", "the body broke off; send it whole"),
        Err(_) => {
            let why = "the body did not come within 10 s; try again";
            failure(StatusCode::REQUEST_TIMEOUT, "too_slow", why)
        }
    }
}

fn quantity(bytes: &Bytes) -> Result<(), Answer> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(());
    }
    let Ok(body) = serde_json::from_slice::<Value>(bytes) else {
        let broken = Answer::new(StatusCode::BAD_REQUEST, "bad_body");
        return Err(broken.message("the body is no JSON; write {\"quantity\":1}"));
    };
    let wrong = match body {
        Value::Object(fields) => {
            match fields.iter().find(|(name, value)| *name != "quantity" || **value != 1) {
                None => return Ok(()),
                Some((name, _)) if name != "quantity" => format!("body: unknown field {name:?}"),
                Some((_, quantity)) => format!("quantity {quantity}: there is one for each buyer"),
            }
        }
        _ => "the body is no object".to_owned(),
    };
    Err(unprocessable("bad_quantity", format!("{wrong}; write {{\"quantity\":1}}")))
}
