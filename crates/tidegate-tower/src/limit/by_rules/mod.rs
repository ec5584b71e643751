//! A decider about requests by rules.
//!
//! ```text
//!   attributes at once, or awaited -> the gate, in memory or remote -> allowed, denied, or delayed
//! ```
//!
//! In memory a decision is made at the call. Over a remote store it is a future, with a copy of the attributes that
//! rules match. A delay that rules demand is a wait by the clock: the units are already taken, so a client that
//! disconnects meanwhile has spent them.

mod asking;
mod attributes;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tidegate_core::{DecidedBy, Verdict};
use tidegate_rules::{Admission, Attributes, Batch, Charges, Gate, PinnedPolicy};

use super::on_response::{HeldPermits, OnResponse, RuleSet, TakenByRules};
use super::outcome::{CallOutcome, Wait};
use super::settings::Settings;
use super::settle::Phase;
use crate::answer::{DeniedRequest, Dialect, Reason};
use crate::delay::Delay;
use crate::event::DecisionResult;
use crate::head::Head;
use crate::key::{Extract, Extracted, LaterEach, Part, peer};
use asking::{Asking, TrackedReply};

/// A decider by rules; clones share the counts.
#[derive(Clone)]
pub(super) struct ByRules {
    pub(super) settings: Arc<Settings>,
    rules: Arc<RuleSet>,
    /// The extractor of the peer address, for the attribute `ip`.
    peer: Arc<dyn Extract>,
    attributes: Vec<(Arc<str>, Arc<dyn Extract>)>,
}

impl ByRules {
    /// Returns a decider by the rules of a gate, which reads the peer address and adds no attributes.
    pub(super) fn new(gate: Gate) -> ByRules {
        let rules = Arc::new(RuleSet::new(gate));
        ByRules { settings: Arc::default(), rules, peer: Arc::new(peer()), attributes: Vec::new() }
    }

    /// Sets the extractor of the attribute `ip`.
    pub(super) fn set_peer(&mut self, peer: Arc<dyn Extract>) {
        self.peer = peer;
    }

    /// Adds an attribute. The name `ip` sets the extractor of the peer address, which exists once.
    pub(super) fn add(&mut self, name: &str, extract: Arc<dyn Extract>) {
        match name {
            attributes::IP => self.set_peer(extract),
            _ => self.attributes.push((name.into(), extract)),
        }
    }

    /// Decides about a request of this cost, at once if all attributes are known and the store is in memory.
    pub(super) fn decide(self: &Arc<Self>, head: Head<'_>, cost: u64) -> CallOutcome {
        let each = [&self.peer].into_iter().chain(self.attributes.iter().map(|(_, extract)| extract));
        let found: Vec<_> = each.map(|extract| extract.extract(head)).collect();
        if found.iter().any(|found| matches!(found, Extracted::Later(_))) {
            let (by, parts) = (Arc::clone(self), LaterEach::of(found));
            return CallOutcome::wait(WaitForAttributes { by, parts, cost });
        }
        let parts: Vec<_> = found.into_iter().map(Extracted::known).collect();
        self.ask(head, &parts, cost)
    }

    /// Decides about a request whose attributes are known.
    fn ask(self: &Arc<Self>, head: Head<'_>, parts: &[Part<'_>], cost: u64) -> CallOutcome {
        if parts.contains(&Part::Refuse) {
            return self.deny_because(head, Reason::Missing);
        }
        let (gate, settlement) = (&self.rules.gate, &self.settings.settlement);
        let is_billed = settlement.may_correct();
        if self.rules.is_in_memory {
            let answer = self.with_attributes(head, parts, cost, |policy, attributes| match is_billed {
                true => policy.admit_tracked(&attributes).now(),
                false => policy.admit(&attributes).now().map(without_bill),
            });
            return match answer {
                Ok(answer) => self.answered(head, answer, cost),
                Err(reason) => self.deny_because(head, reason),
            };
        }
        let asked = self.with_attributes(head, parts, cost, |policy, attributes| {
            (policy.to_batch(), attributes.into_owned())
        });
        match asked {
            Ok((policy, attributes)) => {
                let answer = Box::pin(ask_remote(policy, attributes, is_billed));
                let asking = Asking::new(gate.clone(), answer, settlement.of_unserved(), cost);
                CallOutcome::wait(WaitForGate { by: Arc::clone(self), asking })
            }
            Err(reason) => self.deny_because(head, reason),
        }
    }

    /// Passes on the policy in force and the attributes that it uses, or returns the reason why no decision is possible.
    fn with_attributes<T>(
        &self,
        head: Head<'_>,
        parts: &[Part<'_>],
        cost: u64,
        use_them: impl FnOnce(&PinnedPolicy<'_>, Attributes<'_>) -> T,
    ) -> Result<T, Reason> {
        let pinned = self.rules.gate.pin();
        let policy = pinned.policy();
        let names = [attributes::IP].into_iter().chain(self.attributes.iter().map(|(name, _)| &**name));
        let mut attributes = attributes::of_head(policy, head, cost);
        for (name, part) in names.zip(parts) {
            attributes = attributes::with_part(attributes, name, part);
            if let Some(reason) = attributes::lack(policy, &attributes, (name, part)) {
                return Err(reason);
            }
        }
        if let Some(max_wait) = self.max_wait(head) {
            attributes = attributes.max_wait(max_wait);
        }
        // Only the fields of this dialect report several limits.
        if self.settings.dialect == Dialect::Ietf {
            attributes = attributes.all_limits();
        }
        Ok(use_them(&pinned, attributes))
    }

    /// Returns the max wait of a request beside that of the rules, if one is set.
    fn max_wait(&self, head: Head<'_>) -> Option<Duration> {
        match self.settings.max_wait.is_zero() {
            true => head.timeout(),
            false => Some(self.settings.max_wait(head)),
        }
    }

    /// Returns the outcome of the gate's reply.
    fn answered(&self, head: Head<'_>, answer: TrackedReply, cost: u64) -> CallOutcome {
        let Ok((admission, bill)) = answer else { return self.deny_because(head, Reason::Undecided) };
        // A candidate may have granted a permit although the request is denied.
        let permits = HeldPermits::of(&self.rules.gate, admission.permits());
        let delay = match admission.verdict() {
            Verdict::Allowed { delay } if admission.is_allowed() => delay,
            _ => return CallOutcome::Deny(self.deny(head, &admission)),
        };
        let taken = Box::new(TakenByRules {
            settings: Arc::clone(&self.settings),
            rules: Arc::clone(&self.rules),
            admission,
            bill,
            cost,
            permits,
            phase: Phase::Unserved,
        });
        if delay.is_zero() {
            taken.report(head, DecisionResult::Allowed);
            return CallOutcome::Pass(Some(OnResponse::ByRules(taken)));
        }
        let delay = Delay::lasting(Arc::clone(&self.settings.clock), delay);
        CallOutcome::wait(WaitForTime { delay, taken: Some(taken) })
    }

    /// Returns the denial by the decisive rule. Without one, such requests are denied whatever their number.
    fn deny(&self, head: Head<'_>, admission: &Admission) -> Response<Bytes> {
        let Some(binding) = admission.binding() else {
            let reason = if admission.is_unmatched() { Reason::Unmatched } else { Reason::Forbidden };
            return self.settings.deny(&DeniedRequest::because(head, reason));
        };
        let promise = self.rules.promise(binding);
        let refused = DeniedRequest::by_limit(head, &promise, binding.decision);
        // The remote store failed, and the rule fails closed.
        let is_undecided = admission.decided_by() == DecidedBy::Closed && refused.retry_after().is_some();
        let refused = if is_undecided { refused.for_reason(Reason::Capacity) } else { refused };
        self.rules.with_others(admission, |others| self.settings.deny(&refused.beside(others)))
    }

    /// Returns a denial without a decision of a limit.
    fn deny_because(&self, head: Head<'_>, reason: Reason) -> CallOutcome {
        CallOutcome::Deny(self.settings.deny(&DeniedRequest::because(head, reason)))
    }
}

/// A wait for attributes.
struct WaitForAttributes {
    by: Arc<ByRules>,
    parts: LaterEach,
    cost: u64,
}

impl Wait for WaitForAttributes {
    fn poll(&mut self, head: Head<'_>, context: &mut Context<'_>) -> Poll<CallOutcome> {
        let parts = ready!(Pin::new(&mut self.parts).poll(context));
        Poll::Ready(self.by.ask(head, &parts, self.cost))
    }
}

/// A wait for the reply of a gate on a remote store.
struct WaitForGate {
    by: Arc<ByRules>,
    asking: Asking,
}

impl Wait for WaitForGate {
    fn poll(&mut self, head: Head<'_>, context: &mut Context<'_>) -> Poll<CallOutcome> {
        let answer = ready!(Pin::new(&mut self.asking).poll(context));
        Poll::Ready(self.by.answered(head, answer, self.asking.cost()))
    }
}

/// A wait of an allowed request, until the time that the rules have reserved for it.
struct WaitForTime {
    delay: Delay,
    /// `None` once it is over.
    taken: Option<Box<TakenByRules>>,
}

impl Wait for WaitForTime {
    fn poll(&mut self, head: Head<'_>, context: &mut Context<'_>) -> Poll<CallOutcome> {
        let waited = ready!(Pin::new(&mut self.delay).poll(context));
        let taken = self.taken.take().expect("polled again after it was over");
        Poll::Ready(match waited {
            Ok(()) => {
                taken.report(head, DecisionResult::Waited);
                CallOutcome::Pass(Some(OnResponse::ByRules(taken)))
            }
            // The system has no timer thread to wake the request.
            Err(_) => {
                CallOutcome::Deny(taken.settings.deny(&DeniedRequest::because(head, Reason::Undecided)))
            }
        })
    }
}

/// Asks the rules on a remote store; the takes are kept only if a response may correct them.
async fn ask_remote(policy: Batch, attributes: Attributes<'static>, is_billed: bool) -> TrackedReply {
    match is_billed {
        true => policy.admit_tracked(&attributes).await,
        false => policy.admit(&attributes).await.map(without_bill),
    }
}

/// Returns an admission whose takes are never corrected.
fn without_bill(admission: Admission) -> (Admission, Charges) {
    (admission, Charges::default())
}

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};
    use tidegate_core::{StoreError, Zone};
    use tidegate_rules::Policy;

    use super::*;

    #[test]
    fn a_request_without_a_decision_is_denied() {
        let policy = Policy::from_toml("[[rule]]\nname = 'a'\nlimit = '5/s'").unwrap();
        let by = ByRules::new(Gate::new(policy, Zone::new(1 << 16)).expect("the store supports the policy"));
        let answer = Err(StoreError::unavailable("the plug is out"));
        match by.answered(Head::of(&Request::new(())), answer, 1) {
            CallOutcome::Deny(response) => assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE),
            CallOutcome::Pass(_) | CallOutcome::Wait(_) => panic!("it was not denied"),
        }
    }
}
