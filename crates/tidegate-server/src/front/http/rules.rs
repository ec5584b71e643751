//! `GET /v1/rules`: the rules in force, with their counts.
//!
//! With `Accept: application/toml` the reply is the text of the file, which `PUT /v1/rules` takes back with its
//! entity tag.
//!
//! ```text
//! {"file": "tidegate.toml", "unmatched": "allow",
//!  "rules": [{"name": "api", "when": ["path = \"/api/{*rest}\""], "key": ["ip"], "limit": "10/s burst 20",
//!             "mode": "enforce", ..., "counts": {"allowed": 12, "denied": 3, ...}}],
//!  "zones": [{"name": "logins", "bytes": 16777216, "bytes_in_use": 16777216}],
//!  "status": {"replaced": 0, "rejected": 0, "wrong": null}}
//! ```

use std::collections::{BTreeMap, HashMap};

use hyper::StatusCode;
use hyper::header::HeaderMap;
use serde::Serialize;
use tidegate::{OnStoreFailure, WhenFull, WithoutStore};
use tidegate_rules::{NamedZone, OnMissing, OnRepeated, Rule, RuleCounts, Scheduled, ShadowCounts};
use tidegate_support::ceil_ms;

use super::operator::tag_reply;
use super::problem::Problem;
use super::reply::{Reply, TOML};
use crate::engine::Engine;
use crate::explained::{decision, mode};
use crate::penalty::PenaltyFields;
use crate::rules::Status;

/// The page as JSON.
#[derive(Serialize)]
struct RulesPage<'a> {
    /// The path of the file; `None` if the rules come from no file.
    file: Option<String>,
    /// `allow` or `deny`: the verdict for requests to which no enforced rule applies.
    unmatched: &'static str,
    /// The rules in the order of the file.
    rules: Vec<RuleFields<'a>>,
    /// The named zones of the file.
    zones: Vec<Zone<'a>>,
    /// The outcome of all reloads, with the complaint about the current file.
    status: Status,
}

/// One rule: its settings as in the file, and its counts since the start.
#[derive(Serialize)]
struct RuleFields<'a> {
    name: &'a str,
    /// The conditions as in the file, all of which have to be met.
    when: Vec<String>,
    /// The conditions under which the rule does not apply, if there are any and all are met.
    unless: Vec<String>,
    /// The group of which at most one enforced member applies.
    group: Option<&'a str>,
    /// The names of the key parts; an empty key counts all requests together.
    key: Vec<&'a str>,
    limit: Option<String>,
    /// The limits of single values of the key.
    limit_for: BTreeMap<&'a str, String>,
    /// `enforce`, `shadow` or `candidate`. A schedule window can have another mode.
    mode: &'static str,
    decision: Option<&'static str>,
    candidate_for: Option<&'a str>,
    /// The cost of a request, multiplied by the cost that the request states.
    cost: Option<u64>,
    max_wait_ms: Option<u64>,
    /// The penalty for keys that the rule denies too often.
    penalty: Option<PenaltyFields>,
    on_missing: Option<&'static str>,
    on_repeated: Option<&'static str>,
    on_store_failure: Option<&'static str>,
    when_full: Option<&'static str>,
    zone: Option<&'a str>,
    ipv4_prefix: Option<u8>,
    ipv6_prefix: Option<u8>,
    /// The schedule windows in the order of the file.
    schedule: Vec<Window>,
    /// The counts of the rule, which survive reloads.
    #[serde(with = "Counts")]
    counts: RuleCounts,
}

/// One schedule window of a rule.
#[derive(Serialize)]
struct Window {
    window: String,
    limit: String,
    mode: &'static str,
    cost: u64,
    max_wait_ms: Option<u64>,
}

/// The counts of a rule.
#[derive(Serialize)]
#[serde(remote = "RuleCounts")]
struct Counts {
    allowed: u64,
    denied: u64,
    impossible: u64,
    /// Requests that were denied because the store had no room for another key.
    store_full: u64,
    /// Allowed requests that left at most a fifth of the limit.
    near: u64,
    /// Bans that its penalty began.
    bans: u64,
    /// Requests that were denied while their key was banned; a part of `denied`.
    banned: u64,
    /// For a candidate: requests that it would allow and its rule denied.
    looser: u64,
    /// For a candidate: requests that it would deny and its rule allowed.
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

/// The decisions while the remote store was down, by policy.
#[derive(Serialize)]
#[serde(remote = "WithoutStore")]
struct FallbackFields {
    local_allowed: u64,
    local_denied: u64,
    open: u64,
    open_denied: u64,
    closed: u64,
}

/// The decisions in shadow mode.
#[derive(Serialize)]
#[serde(remote = "ShadowCounts")]
struct ShadowFields {
    allowed: u64,
    denied: u64,
    impossible: u64,
    store_full: u64,
    near: u64,
    bans: u64,
    banned: u64,
}

/// One named zone.
#[derive(Serialize)]
struct Zone<'a> {
    name: &'a str,
    /// The size in the file.
    bytes: usize,
    /// The size in use until the next start: a running zone keeps its size.
    bytes_in_use: usize,
}

/// Returns the rules in force, with their counts.
///
/// The tag is read before the rules, so it is never newer than what the client sees.
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
            unmatched: decision(policy.unmatched()),
            rules: rules.collect(),
            zones: zones.collect(),
            status: engine.rules().status(),
        })
    })
}

impl<'a> RuleFields<'a> {
    /// Creates the fields of a rule. `candidate_for` is the name of the rule that a candidate is measured beside.
    fn new(rule: &'a Rule, candidate_for: Option<&'a str>, counts: RuleCounts) -> RuleFields<'a> {
        // Settings about counting are `None` for a rule without a limit.
        let limit = rule.limit();
        let counting = |of: &'static str| limit.map(|_| of);
        RuleFields {
            name: rule.name(),
            when: rule.conditions().iter().map(ToString::to_string).collect(),
            unless: rule.unless().iter().map(ToString::to_string).collect(),
            group: rule.group(),
            key: rule.key().collect(),
            limit: limit.map(ToString::to_string),
            limit_for: rule.limit_for().map(|(value, limit)| (value, limit.to_string())).collect(),
            mode: if candidate_for.is_some() { "candidate" } else { mode(rule.mode()) },
            decision: rule.decision().map(decision),
            candidate_for,
            cost: limit.map(|_| rule.cost()),
            max_wait_ms: rule.max_wait().map(ceil_ms),
            penalty: rule.penalty().map(PenaltyFields::from),
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

/// Formats a schedule window as in the file.
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
