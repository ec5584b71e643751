//! The fronts of a server behind one trait, with decisions in the types of the conformance kit.

use std::time::Duration;

use conformance::arm::{Answer, Take};
use serde_json::{Value as Json, json};
use tidegate::{Adjusted, Adjustment, Ask, Limit, MILLISECOND, PermitId, Ticks, Verdict};

use crate::wire::http::{self, Talk};
use crate::wire::resp::Value;
use crate::wire::{Running, resp};

const TICKS_PER_MS: u64 = 16_000_000;

/// The resolution of times in replies and of a max wait in requests.
pub(crate) const RESOLUTION: Ticks = Ticks::saturating_from(MILLISECOND);

/// A front, as a client sees it.
pub(crate) trait FrontClient: Sized {
    const NAME: &'static str;

    /// The largest number that the front can send; larger ones are capped to it.
    const MOST: u64;

    fn connect(running: &Running) -> Self;
    fn take(&mut self, key: &[u8], limit: &Limit, ask: Ask) -> (Answer, Option<String>);

    /// Sends takes in one message, if the front supports it.
    fn take_each(&mut self, takes: &[Take<'_>], limit: &Limit) -> Vec<(Answer, Option<String>)> {
        takes.iter().map(|take| self.take(take.key.as_bytes(), limit, take.ask)).collect()
    }

    fn peek(&mut self, key: &[u8], limit: &Limit, ask: Ask) -> Answer;
    fn adjust(&mut self, key: &[u8], limit: &Limit, adjustment: Adjustment) -> Adjusted;
    fn reset(&mut self, key: &[u8]);
    fn release(&mut self, permit: &str) -> bool;
    fn renew(&mut self, permit: &str) -> bool;
}

/// RESP2, the version of a new connection. Several takes are pipelined.
pub(crate) struct Resp2(resp::Client);

/// RESP3. Several takes are sent between `MULTI` and `EXEC`.
pub(crate) struct Resp3(resp::Client);

/// JSON over HTTP.
pub(crate) struct Http(Talk);

pub(crate) fn ms(span: Ticks) -> u64 {
    span.get().div_ceil(TICKS_PER_MS)
}

fn span(ms: u64) -> Ticks {
    Ticks::saturating_from(Duration::from_millis(ms))
}

/// Returns the verdict of a reply, from milliseconds. A missing field is `None`.
fn verdict(allowed: bool, delay: Option<u64>, retry_after: Option<u64>) -> Verdict<Ticks> {
    match (allowed, delay, retry_after) {
        (true, Some(delay), None) => Verdict::Allowed { delay: span(delay) },
        (false, None, Some(retry_after)) => Verdict::Denied { retry_after: span(retry_after) },
        (false, None, None) => Verdict::Impossible,
        other => panic!("no verdict: {other:?}"),
    }
}

/// Returns the number of a permit, the only part that the kit uses.
fn permit_id(permit: &str) -> PermitId {
    let (number, _) = permit.split_once('.').expect("a permit begins with its number");
    PermitId::from_number(u64::from_str_radix(number, 16).expect("in hexadecimal")).expect("not zero")
}

pub(super) fn adjusted(word: &str) -> Adjusted {
    match word {
        "whole" => Adjusted::Whole,
        "capped" => Adjusted::Capped,
        "needs-permit" => Adjusted::NeedsPermit,
        other => panic!("adjusted {other}"),
    }
}

fn resp_request(verb: &str, (key, limit): (&[u8], &Limit), ask: Ask) -> Vec<u8> {
    let (limit, cost, max_wait) =
        (limit.to_string(), ask.cost.get().to_string(), ms(ask.max_wait).to_string());
    let texts = [&limit, "COST", &cost, "MAXWAIT", &max_wait].map(str::as_bytes);
    let words = [&[verb.as_bytes(), key, b"LIMIT"], &texts[..]].concat();
    resp::request(&words)
}

fn resp_ask(client: &mut resp::Client, verb: &str, of: (&[u8], &Limit), ask: Ask) -> Value {
    client.send(&resp_request(verb, of, ask));
    client.read()
}

/// Returns all takes as one message.
fn resp_takes(takes: &[Take<'_>], limit: &Limit) -> Vec<u8> {
    let request = |take: &Take<'_>| resp_request("TG.TAKE", (take.key.as_bytes(), limit), take.ask);
    takes.iter().flat_map(request).collect()
}

fn pipeline(client: &mut resp::Client, takes: &[Take<'_>], limit: &Limit) -> Vec<Value> {
    client.send(&resp_takes(takes, limit));
    takes.iter().map(|_| client.read()).collect()
}

fn transaction(client: &mut resp::Client, takes: &[Take<'_>], limit: &Limit) -> Vec<Value> {
    let (begin, end) = (resp::request(&["MULTI"]), resp::request(&["EXEC"]));
    client.send(&[begin, resp_takes(takes, limit), end].concat());
    assert_eq!(client.read(), Value::Simple("OK".to_owned()));
    takes.iter().for_each(|_| assert_eq!(client.read(), Value::Simple("QUEUED".to_owned())));
    match client.read() {
        Value::Array(replies) => replies,
        other => panic!("no replies of a transaction: {other:?}"),
    }
}

pub(super) fn resp_answer(reply: &Value) -> (Answer, Option<String>) {
    let none_or = |name: &str| u64::try_from(reply.number(name)).ok();
    let permit = reply.field("permit").map(|_| reply.text("permit"));
    let whole = |name: &str| u64::try_from(reply.number(name)).expect("not negative");
    let answer = Answer {
        verdict: verdict(reply.number("allowed") == 1, none_or("delay"), none_or("retry_after")),
        limit: whole("limit"),
        remaining: whole("remaining"),
        reset_after: span(whole("reset_after")),
        permit: permit.as_deref().map(permit_id),
    };
    (answer, permit)
}

macro_rules! over_resp {
    ($front:ident, $name:literal, $greeting:expr, $together:expr) => {
        impl FrontClient for $front {
            const NAME: &'static str = $name;
            const MOST: u64 = i64::MAX as u64;

            fn connect(running: &Running) -> $front {
                let mut client = running.resp();
                client.say($greeting);
                $front(client)
            }

            fn take(&mut self, key: &[u8], limit: &Limit, ask: Ask) -> (Answer, Option<String>) {
                resp_answer(&resp_ask(&mut self.0, "TG.TAKE", (key, limit), ask))
            }

            fn take_each(&mut self, takes: &[Take<'_>], limit: &Limit) -> Vec<(Answer, Option<String>)> {
                $together(&mut self.0, takes, limit).iter().map(resp_answer).collect()
            }

            fn peek(&mut self, key: &[u8], limit: &Limit, ask: Ask) -> Answer {
                resp_answer(&resp_ask(&mut self.0, "TG.PEEK", (key, limit), ask)).0
            }

            fn adjust(&mut self, key: &[u8], limit: &Limit, adjustment: Adjustment) -> Adjusted {
                let number = match adjustment {
                    Adjustment::Charge(cost) => cost.get().to_string(),
                    Adjustment::Refund(cost) => format!("-{}", cost.get()),
                };
                let limit = limit.to_string();
                let reply = self.0.ask(&[b"TG.ADJUST", key, b"LIMIT", limit.as_bytes(), number.as_bytes()]);
                adjusted(&reply.text("adjusted"))
            }

            fn reset(&mut self, key: &[u8]) {
                let reply = self.0.ask(&[b"TG.RESET", key]);
                assert!(matches!(reply, Value::Integer(0 | 1)), "{reply:?}");
            }

            fn release(&mut self, permit: &str) -> bool {
                self.0.ask(&["TG.RELEASE", permit]) == Value::Integer(1)
            }

            fn renew(&mut self, permit: &str) -> bool {
                self.0.ask(&["TG.RENEW", permit]) == Value::Integer(1)
            }
        }
    };
}

over_resp! { Resp2, "a server over RESP2", "PING", pipeline }
over_resp! { Resp3, "a server over RESP3", "HELLO 3", transaction }

impl Http {
    fn ask(&mut self, route: &str, (key, limit): (&[u8], &Limit), ask: Ask) -> http::Answer {
        let body = json!({
            "key": text(key), "limit": limit.to_string(), "cost": ask.cost.get(), "max_wait_ms": ms(ask.max_wait),
        });
        self.0.post(route, &body.to_string())
    }
}

/// Returns a key as text. Keys of the kit are text.
fn text(key: &[u8]) -> &str {
    std::str::from_utf8(key).expect("a key of the kit is text")
}

fn http_answer(answer: &http::Answer) -> (Answer, Option<String>) {
    json_answer(&answer.json())
}

/// Reads a decision from a JSON object.
pub(crate) fn json_answer(body: &Json) -> (Answer, Option<String>) {
    let number = |name: &str| body[name].as_u64();
    let permit = body["permit"].as_str().map(str::to_owned);
    let allowed = body["allowed"].as_bool().unwrap_or_else(|| panic!("no answer: {body}"));
    let decision = Answer {
        verdict: verdict(allowed, number("delay_ms"), number("retry_after_ms")),
        limit: number("limit").expect("a limit"),
        remaining: number("remaining").expect("what remains"),
        reset_after: span(number("reset_after_ms").expect("when it is full")),
        permit: permit.as_deref().map(permit_id),
    };
    (decision, permit)
}

impl FrontClient for Http {
    const NAME: &'static str = "a server over HTTP";
    const MOST: u64 = u64::MAX;

    fn connect(running: &Running) -> Http {
        Http(Talk::to(running))
    }

    fn take(&mut self, key: &[u8], limit: &Limit, ask: Ask) -> (Answer, Option<String>) {
        let answer = self.ask("/v1/take", (key, limit), ask);
        let decision = http_answer(&answer);
        let is_allowed = matches!(decision.0.verdict, Verdict::Allowed { .. });
        assert_eq!(answer.status, if is_allowed { 200 } else { 429 });
        decision
    }

    fn peek(&mut self, key: &[u8], limit: &Limit, ask: Ask) -> Answer {
        let answer = self.ask("/v1/peek", (key, limit), ask);
        assert_eq!(answer.status, 200);
        http_answer(&answer).0
    }

    fn adjust(&mut self, key: &[u8], limit: &Limit, adjustment: Adjustment) -> Adjusted {
        let amount = match adjustment {
            Adjustment::Charge(cost) => json!(cost.get()),
            // A refund that exceeds the debt returns everything, too.
            Adjustment::Refund(cost) => Json::from(-i64::try_from(cost.get()).unwrap_or(i64::MAX)),
        };
        let body = json!({ "key": text(key), "limit": limit.to_string(), "amount": amount });
        let answer = self.0.post("/v1/adjust", &body.to_string()).json();
        adjusted(answer["adjusted"].as_str().unwrap_or_else(|| panic!("not adjusted: {answer}")))
    }

    fn reset(&mut self, key: &[u8]) {
        let status = self.0.post("/v1/reset", &json!({ "key": text(key) }).to_string()).status;
        assert!(status < 300, "{status}");
    }

    fn release(&mut self, permit: &str) -> bool {
        self.0.post("/v1/release", &json!({ "permit": permit }).to_string()).json()["released"] == true
    }

    fn renew(&mut self, permit: &str) -> bool {
        self.0.post("/v1/renew", &json!({ "permit": permit }).to_string()).json()["renewed"] == true
    }
}
