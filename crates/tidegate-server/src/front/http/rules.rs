//! `GET /v1/rules`: the rules in force, with their counts.

use std::collections::HashMap;

use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde::Serialize;
use tidegate::{OnStoreFailure, WhenFull, WithoutStore};
use tidegate_rules::{NamedZone, OnMissing, OnRepeated, Rule, RuleCounts, Scheduled, ShadowCounts};
use tidegate_support::ceil_ms;

use super::keeper::tag_reply;
use super::problem::Problem;
use super::reply::{Reply, TOML};
use crate::engine::Engine;
use crate::explained::{decision, mode};
use crate::rules::Status;

#[derive(Serialize)]
struct RulesPage<'a> {
    file: Option<String>,
    rules: Vec<RuleFields<'a>>,
    zones: Vec<Zone<'a>>,
    status: Status,
}

#[derive(Serialize)]
struct RuleFields<'a> {
    name: &'a str,
    when: Vec<String>,
    key: Vec<&'a str>,
    limit: Option<String>,
    mode: &'static str,
    decision: Option<&'static str>,
    candidate_for: Option<&'a str>,
    cost: Option<u64>,
    max_wait_ms: Option<u64>,
    on_missing: Option<&'static str>,
    on_repeated: Option<&'static str>,
    on_store_failure: Option<&'static str>,
    when_full: Option<&'static str>,
    zone: Option<&'a str>,
    ipv4_prefix: Option<u8>,
    ipv6_prefix: Option<u8>,
    schedule: Vec<Window>,
    #[serde(with = "Counts")]
    counts: RuleCounts,
}

#[derive(Serialize)]
struct Window {
    window: String,
    limit: String,
    mode: &'static str,
    cost: u64,
    max_wait_ms: Option<u64>,
}

#[derive(Serialize)]
#[serde(remote = "RuleCounts")]
struct Counts {
    allowed: u64,
    denied: u64,
    impossible: u64,
    store_full: u64,
    near: u64,
    looser: u64,
    stricter: u64,
    /// For a rule in shadow mode or a candidate: requests that it did not decide, since the store was down.
    unmeasured: u64,
    /// The part of these counts from shadow mode.
    #[serde(with = "ShadowFields")]
    shadow: ShadowCounts,
    /// The part of these counts that the fallback decided while the store was down.
    #[serde(with = "FallbackFields")]
    without_store: WithoutStore,
}

#[derive(Serialize)]
#[serde(remote = "WithoutStore")]
struct FallbackFields {
    local_allowed: u64,
    local_denied: u64,
    open: u64,
    open_denied: u64,
    closed: u64,
}

#[derive(Serialize)]
#[serde(remote = "ShadowCounts")]
struct ShadowFields {
    allowed: u64,
    denied: u64,
    impossible: u64,
    store_full: u64,
    near: u64,
}

#[derive(Serialize)]
struct Zone<'a> {
    name: &'a str,
    /// The size in the file.
    bytes: usize,
    /// The size in use until the next start: a running zone keeps its size.
    bytes_in_use: usize,
}

/// Returns the rules in force, with their counts.
pub(super) fn list(headers: &mut HeaderMap, engine: &Engine) -> Reply {
    tag_reply(headers, engine.rules().tag());
    let counts = engine.gate().counts();
    let rules = counts.iter().map(|(rule, counted)| {
        let base = rule.candidate_for().and_then(|base| counts.get(base));
        RuleFields::new(rule, base.map(|(base, _)| base.name()), *counted)
    });
    engine.gate().with_policy(|policy| {
        let sizes: HashMap<_, _> =
            engine.gate().zones().into_iter().map(|(name, zone)| (name, zone.bytes())).collect();
        let zones = policy.zones().iter().map(|NamedZone { name, bytes, .. }| {
            let bytes_in_use = sizes.get(&**name).copied().unwrap_or(*bytes);
            Zone { name, bytes: *bytes, bytes_in_use }
        });
        Reply::of(&RulesPage {
            file: engine.rules().file(),
            rules: rules.collect(),
            zones: zones.collect(),
            status: engine.rules().status(),
        })
    })
}

impl<'a> RuleFields<'a> {
    fn new(rule: &'a Rule, candidate_for: Option<&'a str>, counts: RuleCounts) -> RuleFields<'a> {
        // Settings about counting are `None` for a rule without a limit.
        let limit = rule.limit();
        let counting = |of: &'static str| limit.map(|_| of);
        RuleFields {
            name: rule.name(),
            when: rule.conditions().iter().map(ToString::to_string).collect(),
            key: rule.key().collect(),
            limit: limit.map(ToString::to_string),
            mode: if candidate_for.is_some() { "candidate" } else { mode(rule.mode()) },
            decision: rule.decision().map(decision),
            candidate_for,
            cost: limit.map(|_| rule.cost()),
            max_wait_ms: rule.max_wait().map(ceil_ms),
            on_missing: counting(match rule.on_missing() {
                OnMissing::Share => "share",
                OnMissing::Skip => "skip",
            }),
            on_repeated: counting(match rule.on_repeated() {
                OnRepeated::Share => "share",
                OnRepeated::Deny => "deny",
                OnRepeated::First => "first",
                OnRepeated::Last => "last",
            }),
            on_store_failure: counting(match rule.on_store_failure() {
                OnStoreFailure::Open => "open",
                OnStoreFailure::Closed => "closed",
                OnStoreFailure::Local => "local",
            }),
            when_full: counting(match rule.when_full() {
                WhenFull::Share => "share",
                WhenFull::Forget => "forget",
            }),
            zone: rule.zone(),
            ipv4_prefix: limit.map(|_| rule.grouping().ipv4_bits),
            ipv6_prefix: limit.map(|_| rule.grouping().ipv6_bits),
            schedule: rule.schedule().map(Window::from).collect(),
            counts,
        }
    }
}

impl From<Scheduled<'_>> for Window {
    fn from(then: Scheduled<'_>) -> Window {
        let Scheduled { window, limit, mode: of, cost, max_wait, .. } = then;
        Window { window, limit: limit.to_string(), mode: mode(of), cost, max_wait_ms: max_wait.map(ceil_ms) }
    }
}

/// Returns the text of the file that is in force. Replies 404 if the rules come from no file.
pub(super) fn text(headers: &mut HeaderMap, engine: &Engine) -> Result<Reply, Problem> {
    tag_reply(headers, engine.rules().tag());
    let text = engine.rules().text().ok_or_else(|| {
        let detail =
            "the rules come from no file; start the server with --config FILE, or ask for application/json";
        Problem::new(StatusCode::NOT_FOUND, detail)
    })?;
    Ok(Reply::new(StatusCode::OK, TOML, text))
}
