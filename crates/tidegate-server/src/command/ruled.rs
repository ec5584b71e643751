//! A decision of rules in a server's reply, for people and as an exit code.
//!
//! The first line is the verdict with the binding rule, the others are the other limits that decided:
//!
//! ```text
//! allowed under rule "login", 2 of 3 left
//!   day  96 of 100 left
//! ```

use std::fmt;
use std::process::ExitCode;

use serde_json::Value;

use super::output::print_line;
use super::server::ServerReply;
use super::span::Span;

/// The exit code of a denial.
pub(super) const DENIED: u8 = 3;

/// Prints a decision, as JSON or for people. Returns its exit code.
pub(super) fn print_decision(reply: &ServerReply, is_json: bool) -> ExitCode {
    if is_json {
        print_line(&reply.text);
    } else {
        print_line(RuledDecision(&reply.json));
    }
    if reply.json["allowed"] == true { ExitCode::SUCCESS } else { ExitCode::from(DENIED) }
}

/// A decision as the HTTP interface sends it.
struct RuledDecision<'a>(&'a Value);

impl fmt::Display for RuledDecision<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RuledDecision(decision) = self;
        let number = |name: &str| decision[name].as_u64();
        let rule = decision["rule"].as_str();
        let of_rule = |word: &str| rule.map_or(String::new(), |rule| format!(" {word} rule {rule:?}"));
        match (decision["allowed"] == true, number("limit"), number("retry_after_ms")) {
            (true, Some(limit), _) => {
                let delay = number("delay_ms").filter(|ms| *ms > 0);
                let when = delay.map_or(String::new(), |ms| format!(" after a wait of {}", Span(ms)));
                let left = number("remaining").unwrap_or_default();
                write!(out, "allowed{when}{}, {left} of {limit} left", of_rule("under"))?;
            }
            (true, None, _) if decision["overridden"] == true => {
                write!(out, "allowed{}: an override of this key exempts it", of_rule("by"))?;
            }
            (true, None, _) => write!(out, "allowed{}, no limit counts it", of_rule("by"))?,
            (false, _, Some(ms)) => {
                let verdict = match decision["ban"].as_str() {
                    Some("begun") => "denied and banned",
                    Some(_) => "banned",
                    None => "denied",
                };
                write!(out, "{verdict}{}, try again in {}", of_rule("by"), Span(ms))?;
            }
            (false, Some(limit), None) => write!(
                out,
                "denied{}, and no wait would help: at most {limit} can pass at once",
                of_rule("by")
            )?,
            (false, None, None) if decision["overridden"] == true => {
                write!(out, "denied{}: an override of this key denies it", of_rule("by"))?;
            }
            (false, None, None) if rule.is_none() => {
                out.write_str("denied: no rule applies to the request, and [rules] unmatched is \"deny\"")?;
            }
            (false, None, None) => write!(out, "denied{}, which always denies it", of_rule("by"))?,
        }
        let others = decision["limits"].as_array().map_or(&[][..], Vec::as_slice).iter().skip(1);
        let name = |limit: &Value| limit["name"].as_str().unwrap_or_default().to_owned();
        let width = others.clone().map(|limit| name(limit).len()).max().unwrap_or_default();
        for limit in others {
            write!(out, "\n  {:width$}  {} of {} left", name(limit), limit["remaining"], limit["limit"])?;
        }
        match decision["permit"].as_str() {
            Some(permit) => write!(out, "\npermit {permit}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_read_the_verdict_and_then_the_other_limits() {
        let limits = json!([
            {"name": "login", "limit": 3, "remaining": 2}, {"name": "day", "limit": 100, "remaining": 96},
            {"name": "everybody", "limit": 1000, "remaining": 7},
        ]);
        for (decision, expected) in [
            (
                json!({"allowed": true, "limit": 3, "remaining": 2, "delay_ms": 0, "rule": "login", "limits": limits}),
                "allowed under rule \"login\", 2 of 3 left\n  day        96 of 100 left\n  everybody  7 of 1000 left",
            ),
            (
                json!({"allowed": true, "limit": 3, "remaining": 2, "delay_ms": 500, "rule": "q", "permit": "1f.x"}),
                "allowed after a wait of 500 ms under rule \"q\", 2 of 3 left\npermit 1f.x",
            ),
            (
                json!({"allowed": true, "limit": null, "rule": null, "limits": []}),
                "allowed, no limit counts it",
            ),
            (
                json!({"allowed": true, "limit": null, "rule": "office", "limits": []}),
                "allowed by rule \"office\", no limit counts it",
            ),
            (
                json!({"allowed": false, "limit": 3, "retry_after_ms": 2000, "rule": "login"}),
                "denied by rule \"login\", try again in 2 s",
            ),
            (
                json!({"allowed": false, "limit": 3, "retry_after_ms": 60_000, "rule": "login", "ban": "begun"}),
                "denied and banned by rule \"login\", try again in 60 s",
            ),
            (
                json!({"allowed": false, "limit": 3, "retry_after_ms": 2000, "rule": "login", "ban": "in_force"}),
                "banned by rule \"login\", try again in 2 s",
            ),
            (
                json!({"allowed": false, "limit": 3, "retry_after_ms": null, "rule": "login"}),
                "denied by rule \"login\", and no wait would help: at most 3 can pass at once",
            ),
            (
                json!({"allowed": false, "limit": null, "retry_after_ms": null, "rule": "robots"}),
                "denied by rule \"robots\", which always denies it",
            ),
            (
                json!({"allowed": false, "limit": null, "retry_after_ms": null, "rule": null, "limits": []}),
                "denied: no rule applies to the request, and [rules] unmatched is \"deny\"",
            ),
            (
                json!({"allowed": false, "limit": null, "retry_after_ms": null, "rule": "api", "overridden": true}),
                "denied by rule \"api\": an override of this key denies it",
            ),
            (
                json!({"allowed": true, "limit": null, "rule": "api", "overridden": true}),
                "allowed by rule \"api\": an override of this key exempts it",
            ),
        ] {
            assert_eq!(RuledDecision(&decision).to_string(), expected);
        }
    }
}
