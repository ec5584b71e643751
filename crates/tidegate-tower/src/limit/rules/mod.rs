//! Rules decide, of which there may be any number.

mod asking;
mod attributes;
mod permits;
mod ruled;
mod settling;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tidegate::{DecidedBy, StoreError, Verdict};
use tidegate_rules::{Admission, Attributes, Bill, Binding, Gate};

use super::noted::{Course, Noted};
use super::paused::Step;
use super::service::Beginning;
use super::settings::Settings;
use crate::answer::{Promise, Promises, Reason, Refused};
use crate::delay::Delay;
use crate::head::Head;
use crate::key::{Extract, Extracted, LaterEach, Part, peer};
pub(super) use asking::Asking;
use permits::Places;
pub(super) use ruled::Ruled;
pub(super) use settling::Settling;

/// Rules on a store; clones share what was counted.
#[derive(Clone)]
pub(super) struct Rules {
    gate: Gate,
    is_in_memory: bool,
    /// Finds who is connected, for the attribute `ip`.
    peer: Arc<dyn Extract>,
    attributes: Vec<(Arc<str>, Arc<dyn Extract>)>,
    promises: Arc<Promises>,
}

/// The answer of a gate, with what was taken if somebody may have to correct that.
pub(super) type Billed = Result<(Admission, Bill), StoreError>;

impl Rules {
    pub(super) fn new(gate: Gate) -> Rules {
        let (peer, promises, is_in_memory) = (Arc::new(peer()), Arc::default(), gate.is_in_memory());
        Rules { gate, is_in_memory, peer, attributes: Vec::new(), promises }
    }

    pub(super) fn set_peer(&mut self, peer: Arc<dyn Extract>) {
        self.peer = peer;
    }

    pub(super) fn add(&mut self, name: &str, extract: Arc<dyn Extract>) {
        match name {
            attributes::IP => self.set_peer(extract),
            _ => self.attributes.push((name.into(), extract)),
        }
    }

    pub(super) fn begin(&self, settings: &Arc<Settings>, head: Head<'_>, units: u64) -> Beginning {
        let each = || [&self.peer].into_iter().chain(self.attributes.iter().map(|(_, extract)| extract));
        let found: Vec<_> = each().map(|extract| extract.extract(head)).collect();
        if found.iter().any(|found| matches!(found, Extracted::Later(_))) {
            return Beginning::pause(Step::Gather(LaterEach::of(found), units));
        }
        let parts: Vec<_> = found.into_iter().map(Extracted::known).collect();
        self.ask(settings, head, &parts, units)
    }

    /// Decides about a request whose attributes are known.
    pub(super) fn ask(
        &self,
        settings: &Arc<Settings>,
        head: Head<'_>,
        parts: &[Part<'_>],
        units: u64,
    ) -> Beginning {
        if parts.contains(&Part::Refuse) {
            return Beginning::Refuse(settings.refuse(&Refused::because(head, Reason::Missing)));
        }
        let is_billed = settings.settlement.may_correct();
        let beginning = if self.is_in_memory {
            let answer = self.with_attributes(settings, (head, parts), units, |attributes| match is_billed {
                true => self.gate.admit_billed_now(&attributes),
                false => self.gate.admit_now(&attributes).map(without_bill),
            });
            answer.map(|answer| self.answered(settings, head, answer, units))
        } else {
            let attributes = self.with_attributes(settings, (head, parts), units, |all| all.into_owned());
            attributes.map(|attributes| {
                let (gate, unserved) = (self.gate.clone(), settings.settlement.of_unserved());
                let asked = Box::pin(ask_elsewhere(gate.clone(), attributes, is_billed));
                Beginning::pause(Step::Gate(Asking::new(gate, (unserved, units), asked), units))
            })
        };
        beginning.unwrap_or_else(|reason| Beginning::Refuse(settings.refuse(&Refused::because(head, reason))))
    }

    /// Hands over what rules look at; or says why nobody can.
    fn with_attributes<T>(
        &self,
        settings: &Settings,
        (head, parts): (Head<'_>, &[Part<'_>]),
        units: u64,
        use_them: impl FnOnce(Attributes<'_>) -> T,
    ) -> Result<T, Reason> {
        self.gate.with_policy(|policy| {
            let names = [attributes::IP].into_iter().chain(self.attributes.iter().map(|(name, _)| &**name));
            let mut attributes = attributes::of_head(policy, head, units);
            for (name, part) in names.zip(parts) {
                attributes = attributes::with_part(attributes, name, part);
                if let Some(reason) = attributes::lack(policy, &attributes, (name, part)) {
                    return Err(reason);
                }
            }
            Ok(use_them(match self.patience(settings, head) {
                Some(patience) => attributes.patience(patience),
                None => attributes,
            }))
        })
    }

    /// How long a request may wait; as long as rules say, if nobody says anything else.
    fn patience(&self, settings: &Settings, head: Head<'_>) -> Option<Duration> {
        match settings.longest_wait.is_zero() {
            true => head.timeout(),
            false => Some(settings.patience(head)),
        }
    }

    /// Goes on as the gate says.
    pub(super) fn answered(
        &self,
        settings: &Arc<Settings>,
        head: Head<'_>,
        answer: Billed,
        units: u64,
    ) -> Beginning {
        let Ok((admission, bill)) = answer else {
            return Beginning::Refuse(settings.refuse(&Refused::because(head, Reason::Undecided)));
        };
        // Whoever is only measured gives a place also beside a denial.
        let places = Places::of(&self.gate, admission.permits());
        if !admission.is_allowed() {
            return Beginning::Refuse(self.refuse(settings, head, &admission));
        }
        let binding = admission.binding().cloned();
        let delay = match admission.verdict() {
            Verdict::Allowed { delay } => delay,
            Verdict::Denied { .. } | Verdict::Impossible => Duration::ZERO,
        };
        let (clock, settings) = (Arc::clone(&settings.clock), Arc::clone(settings));
        let (gate, course) = (self.gate.clone(), Course::Unserved);
        let noted = Noted::Rules(Box::new(Ruled { settings, gate, binding, bill, units, places, course }));
        match delay.is_zero() {
            true => Beginning::Pass(noted),
            false => {
                let delay = Delay::lasting(clock, delay);
                Beginning::pause(Step::Delay { delay, noted })
            }
        }
    }

    fn refuse(&self, settings: &Settings, head: Head<'_>, admission: &Admission) -> Response<Bytes> {
        let Some(binding) = admission.binding() else {
            return settings.refuse(&Refused::because(head, Reason::Forbidden));
        };
        let promise = self.promise(binding);
        let refused = Refused::by_limit(head, &promise, binding.decision);
        // Nobody was asked: the store failed, and the rule refuses everybody then.
        let is_undecided = admission.decided_by() == DecidedBy::Closed && refused.retry_after().is_some();
        settings.refuse(&if is_undecided { refused.for_reason(Reason::Capacity) } else { refused })
    }

    fn promise(&self, binding: &Binding) -> Arc<Promise> {
        self.promises.of(&binding.rule, &binding.limit)
    }
}

/// The answer of a gate that is elsewhere.
async fn ask_elsewhere(gate: Gate, attributes: Attributes<'static>, is_billed: bool) -> Billed {
    match is_billed {
        true => gate.admit_billed(&attributes).await,
        false => gate.admit(&attributes).await.map(without_bill),
    }
}

fn without_bill(admission: Admission) -> (Admission, Bill) {
    (admission, Bill::default())
}
