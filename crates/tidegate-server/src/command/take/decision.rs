//! The decision in a server's reply, for people and programs.
//!
//! People get one line: `allowed, 14 of 16 left` or `denied, try again in 2 s`. Programs get the same JSON as from
//! `POST /v1/take`.

use std::fmt;

use serde::Serialize;

use super::{Failure, RespReply};
use crate::command::span::Span;

/// The decision of the server. The names are those of the HTTP interface.
#[derive(Debug, Serialize)]
pub(super) struct DecisionReply {
    /// The verdict, which is also the exit code.
    pub(super) allowed: bool,
    /// The most that can pass at once; -1 if nothing was counted.
    limit: i64,
    /// The largest cost that would pass now; -1 if nothing was counted.
    remaining: i64,
    /// Milliseconds until a retry succeeds; `None` if it was allowed or can never pass.
    retry_after_ms: Option<u64>,
    /// Milliseconds until the quota is full again.
    reset_after_ms: Option<u64>,
    /// Milliseconds to wait before the action; `None` for a denial.
    delay_ms: Option<u64>,
    /// Always `None`: the limit came with the request.
    rule: Option<String>,
    /// The source of the decision, such as `memory` or `redis`.
    decided_by: Option<String>,
    /// The text of the permit, under a concurrency limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    permit: Option<String>,
}

impl DecisionReply {
    /// Reads alternating names and values. Unknown names are ignored; a missing number is an error.
    pub(super) fn read(reply: RespReply) -> Result<DecisionReply, Failure> {
        let RespReply::List(entries) = reply else { return Err(not_a_decision("not a list")) };
        let number = |name: &str| match value(&entries, name) {
            Some(RespReply::Number(number)) => Ok(*number),
            _ => Err(not_a_decision(name)),
        };
        // -1 stands for none.
        let span = |name: &str| number(name).map(|ms| u64::try_from(ms).ok());
        let text = |name: &str| match value(&entries, name) {
            Some(RespReply::Text(text)) => Some(text.clone()),
            _ => None,
        };
        Ok(DecisionReply {
            allowed: number("allowed")? == 1,
            limit: number("limit")?,
            remaining: number("remaining")?,
            retry_after_ms: span("retry_after")?,
            reset_after_ms: span("reset_after")?,
            delay_ms: span("delay")?,
            rule: text("rule"),
            decided_by: text("decided_by"),
            permit: text("permit"),
        })
    }
}

/// Returns the value after this name.
fn value<'a>(entries: &'a [RespReply], name: &str) -> Option<&'a RespReply> {
    let is_it = |entry: &RespReply| matches!(entry, RespReply::Text(text) if text == name);
    entries.chunks_exact(2).find(|pair| is_it(&pair[0])).map(|pair| &pair[1])
}

/// Returns the error about a reply that is not a decision, as from another server or version.
fn not_a_decision(what: &str) -> Failure {
    Failure::failed(format!(
        "the server's answer is no decision ({what}); ask a tidegate server of this version"
    ))
}

impl fmt::Display for DecisionReply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.allowed, self.retry_after_ms) {
            (true, _) => {
                let delay = self.delay_ms.filter(|ms| *ms > 0);
                let when = delay.map_or(String::new(), |ms| format!(" after a wait of {}", Span(ms)));
                write!(out, "allowed{when}, {} of {} left", self.remaining, self.limit)?;
                self.permit.as_ref().map_or(Ok(()), |permit| write!(out, "\npermit {permit}"))
            }
            (false, Some(ms)) => write!(out, "denied, try again in {}", Span(ms)),
            (false, None) => {
                write!(out, "denied, and no wait would help: at most {} can pass at once", self.limit)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(numbers: [(&str, i64); 6]) -> RespReply {
        let pairs =
            numbers.map(|(name, number)| [RespReply::Text(name.to_owned()), RespReply::Number(number)]);
        RespReply::List(pairs.into_iter().flatten().collect())
    }

    fn decision(allowed: i64, retry_after: i64, delay: i64) -> DecisionReply {
        let numbers = [("limit", 16), ("remaining", 14), ("allowed", allowed), ("reset_after", 2000)];
        let [limit, remaining, allowed, reset_after] = numbers;
        let spans = [("retry_after", retry_after), ("delay", delay)];
        DecisionReply::read(reply([limit, remaining, allowed, reset_after, spans[0], spans[1]])).unwrap()
    }

    #[test]
    fn people_read_one_line() {
        for (decision, expected) in [
            (decision(1, -1, 0), "allowed, 14 of 16 left"),
            (decision(1, -1, 500), "allowed after a wait of 500 ms, 14 of 16 left"),
            (decision(0, 2000, -1), "denied, try again in 2 s"),
            (decision(0, -1, -1), "denied, and no wait would help: at most 16 can pass at once"),
        ] {
            assert_eq!(decision.to_string(), expected);
        }
    }

    #[test]
    fn programs_read_null_for_none() {
        assert_eq!(
            serde_json::to_string(&decision(0, 2000, -1)).unwrap(),
            r#"{"allowed":false,"limit":16,"remaining":14,"retry_after_ms":2000,"reset_after_ms":2000,"delay_ms":null,"rule":null,"decided_by":null}"#
        );
    }

    #[test]
    fn an_answer_that_is_no_decision_is_not_taken_for_one() {
        assert!(DecisionReply::read(RespReply::Text("OK".to_owned())).is_err());
        assert!(DecisionReply::read(RespReply::List(vec![])).is_err());
    }
}
