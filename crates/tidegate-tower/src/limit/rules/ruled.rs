//! What is remembered about a request that rules let pass.

use std::sync::Arc;

use http::Response;
use tidegate_rules::{Bill, Binding, Gate};

use super::Rules;
use super::permits::Places;
use super::settling::{self, Settling, Task};
use crate::answer::{Dialect, put_left};
use crate::body::{Answered, Held};
use crate::head::ResponseHead;
use crate::limit::noted::Course;
use crate::limit::settings::Settings;
use crate::limit::settle::Settle;

/// What is remembered about a request that rules let pass.
pub(in crate::limit) struct Ruled {
    pub(super) settings: Arc<Settings>,
    pub(super) gate: Gate,
    pub(super) binding: Option<Binding>,
    /// What it took, if that may have to be corrected.
    pub(super) bill: Bill,
    pub(super) units: u64,
    pub(super) places: Option<Places>,
    pub(in crate::limit) course: Course,
}

impl Ruled {
    /// Corrects what was spent and gives back what was held, if that takes somebody who awaits it.
    pub(in crate::limit) fn settle(&mut self, rules: &Rules, response: ResponseHead<'_>) -> Option<Settling> {
        let settle = match self.bill.is_empty() {
            true => Settle::Keep,
            false => self.settings.settlement.of(response),
        };
        self.course = Course::Settled;
        if rules.is_in_memory {
            self.correct(settle);
            return None;
        }
        let mut each: Vec<Task> = Vec::new();
        if settle != Settle::Keep {
            each.push(Box::pin(self.correction(settle)));
        }
        if let Some(places) = self.places.take() {
            each.push(Box::pin(places.release()));
        }
        (!each.is_empty()).then(|| Settling::new(self.gate.clone(), Box::pin(settling::all(each))))
    }

    /// Corrects what was spent, without anybody who waits: at once in memory.
    fn correct(&mut self, settle: Settle) {
        if settle != Settle::Keep && !self.bill.is_empty() {
            let correction = self.correction(settle);
            self.gate.in_background(Box::pin(correction));
        }
    }

    fn correction(&mut self, settle: Settle) -> impl Future<Output = ()> + Send + use<> {
        let (bill, settle) = (std::mem::take(&mut self.bill), settle.at_most(self.units));
        settling::correct(self.gate.clone(), bill, (settle, self.units))
    }

    /// Tells what is left.
    pub(in crate::limit) fn conclude<R>(
        mut self,
        rules: &Rules,
        mut response: Response<R>,
    ) -> Response<Answered<R>> {
        if let (Some(binding), true) = (&self.binding, self.settings.dialect != Dialect::None) {
            let promise = rules.promise(binding);
            put_left(response.headers_mut(), self.settings.dialect, promise.spoken(&binding.decision));
        }
        response.map(|body| match self.places.take() {
            None => Answered::theirs(body),
            Some(places) => Answered::theirs_holding(body, Box::new(places) as Held),
        })
    }

    pub(in crate::limit) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }
}

impl Drop for Ruled {
    fn drop(&mut self) {
        self.correct(self.course.if_dropped(&self.settings));
    }
}
