//! A decision as JSON.

use std::fmt::Write as _;

use bytes::BytesMut;
use tidegate::{Algorithm, Ask, Limit, Verdict};

use super::digits;
use crate::answer::{Answer, DECIDED_BY};

const QUOTA_EXCEEDED: &[u8] = br#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"detail":""#;
const REDUCED_CAPACITY: &[u8] = br#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Temporarily reduced capacity","status":429,"detail":""#;

/// The fields of every answer, without the braces around them.
pub(super) fn put(out: &mut BytesMut, answer: Answer) {
    let allowed: &[u8] = if answer.is_allowed() { b"\"allowed\":true" } else { b"\"allowed\":false" };
    out.extend_from_slice(allowed);
    out.extend_from_slice(b",\"limit\":");
    digits::put(out, answer.0.limit());
    out.extend_from_slice(b",\"remaining\":");
    digits::put(out, answer.0.remaining());
    out.extend_from_slice(b",\"retry_after_ms\":");
    put_or_null(out, answer.retry_after_ms());
    out.extend_from_slice(b",\"reset_after_ms\":");
    digits::put(out, answer.reset_after_ms());
    out.extend_from_slice(b",\"delay_ms\":");
    put_or_null(out, answer.delay_ms());
    out.extend_from_slice(b",\"rule\":null,\"decided_by\":\"");
    out.extend_from_slice(DECIDED_BY.as_bytes());
    out.extend_from_slice(b"\"");
}

fn put_or_null(out: &mut BytesMut, number: Option<u64>) {
    match number {
        Some(number) => digits::put(out, number),
        None => out.extend_from_slice(b"null"),
    }
}

/// A refusal as a problem, with the same fields.
pub(super) fn put_refusal(out: &mut BytesMut, answer: Answer, limit: &Limit, ask: Ask) {
    let is_full = answer.0.is_store_full();
    out.extend_from_slice(if is_full { REDUCED_CAPACITY } else { QUOTA_EXCEEDED });
    put_detail(out, answer, limit, ask);
    out.extend_from_slice(b"\",\"violated-policies\":[\"adhoc\"],");
    put(out, answer);
    out.extend_from_slice(b"}");
}

/// When to try again, or why that is in vain; no character in it has to be escaped.
fn put_detail(out: &mut BytesMut, answer: Answer, limit: &Limit, ask: Ask) {
    let cost = ask.cost.get();
    match answer.0.verdict_in_ticks() {
        Verdict::Denied { .. } if answer.0.is_store_full() => {
            out.extend_from_slice(b"The store has no room for another key; try again in a while.");
        }
        Verdict::Denied { .. } => {
            out.extend_from_slice(b"Refused; the same request passes in ");
            digits::put(out, answer.retry_after_ms().unwrap_or(0));
            out.extend_from_slice(b" ms if nobody else spends meanwhile.");
        }
        // A buffer in memory takes whatever is written.
        _ if limit.algorithm() == Algorithm::Pacer => {
            let _ = write!(
                out,
                "A cost of {cost} takes more patience than this; ask for less, or show more patience_ms."
            );
        }
        _ => {
            let _ = write!(
                out,
                "A cost of {cost} can never pass: this limit holds at most {}; ask for less, or raise the limit.",
                answer.0.limit()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;
    use tidegate::{AdHoc, Cost, Limit, ManualClock, Map, Zone};

    use super::*;

    fn refusal(adhoc: &AdHoc, limit: &str, ask: Ask) -> Value {
        let limit: Limit = limit.parse().unwrap();
        let mut out = BytesMut::new();
        put_refusal(&mut out, Answer(adhoc.take("ana", &limit, ask)), &limit, ask);
        serde_json::from_slice(&out).unwrap()
    }

    fn zone() -> AdHoc {
        AdHoc::on(&Zone::with_clock(1 << 16, Arc::new(ManualClock::new())), "")
    }

    #[test]
    fn a_refusal_says_when_to_try_again() {
        let adhoc = zone();
        assert!(adhoc.take("ana", &Limit::per_minute(1), Ask::ONE).is_allowed());
        let refusal = refusal(&adhoc, "1/60s", Ask::ONE);
        assert_eq!(
            refusal["detail"],
            "Refused; the same request passes in 60000 ms if nobody else spends meanwhile."
        );
        assert_eq!((&refusal["retry_after_ms"], &refusal["delay_ms"]), (&60_000.into(), &Value::Null));
        assert_eq!(refusal["violated-policies"], Value::from(vec!["adhoc"]));
        assert!(refusal["type"].as_str().unwrap().ends_with("#quota-exceeded"));
    }

    #[test]
    fn what_can_never_pass_says_why() {
        let detail = |limit, ask| refusal(&zone(), limit, ask)["detail"].as_str().unwrap().to_owned();
        let too_much = detail("10/s", Ask::new(Cost::of(11)));
        assert_eq!(
            too_much,
            "A cost of 11 can never pass: this limit holds at most 10; ask for less, or raise the limit."
        );
        let too_hasty = Ask::new(Cost::of(5)).patience(tidegate::MILLISECOND);
        assert!(detail("10/s pacer burst 2 pay self", too_hasty).contains("takes more patience than this"));
    }

    #[test]
    fn a_full_store_refuses_newcomers_and_says_that_it_is_full() {
        let adhoc = AdHoc::on(&Map::new().max_keys(1), "");
        assert!(adhoc.take("bob", &Limit::per_hour(1), Ask::ONE).is_allowed());
        let refusal = refusal(&adhoc, "5/h", Ask::ONE);
        assert!(refusal["type"].as_str().unwrap().ends_with("#temporary-reduced-capacity"), "{refusal}");
        assert_eq!((&refusal["status"], &refusal["allowed"]), (&429.into(), &false.into()));
        assert!(refusal["retry_after_ms"].as_u64().unwrap() > 0);
    }
}
