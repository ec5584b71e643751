//! What is remembered about a request that rules let pass.

use std::sync::Arc;
use std::task::Context;

use http::Response;
use tidegate_rules::{Bill, Binding};

use super::Rules;
use super::permits::Places;
use super::settling::{self, Settling};
use crate::answer::{Dialect, put_left};
use crate::body::{Answered, Held};
use crate::head::ResponseHead;
use crate::limit::settings::{Settings, Way};
use crate::limit::settle::Settle;

/// What is remembered about a request that rules let pass.
pub(in crate::limit) struct Ruled {
    pub(super) settings: Arc<Settings>,
    pub(super) binding: Option<Binding>,
    /// What it took, if that may have to be corrected.
    pub(super) bill: Bill,
    pub(super) units: u64,
    pub(super) places: Option<Places>,
    pub(super) others: Others,
}

/// The places that others have left behind.
#[derive(Default)]
pub(super) enum Others {
    /// Nobody has looked for them yet.
    #[default]
    Unknown,
    /// Some are given back now.
    GivenBack(Settling),
    /// There are none.
    None,
}

impl Ruled {
    /// Gives back what others have left behind, as long as the service takes anyway.
    pub(in crate::limit) fn meanwhile(&mut self, context: &mut Context<'_>) {
        if let (Others::Unknown, Way::Rules(rules)) = (&self.others, &self.settings.way) {
            self.others = rules.left_behind().map_or(Others::None, Others::GivenBack);
        }
        if let Others::GivenBack(others) = &mut self.others
            && others.as_mut().poll(context).is_ready()
        {
            self.others = Others::None;
        }
    }

    /// Corrects what was spent and gives back what was held, if that takes somebody who awaits it.
    pub(in crate::limit) fn settle(&mut self, rules: &Rules, response: ResponseHead<'_>) -> Option<Settling> {
        let settle = match &self.settings.after {
            Some(after) if !self.bill.is_empty() => after(response).at_most(self.units),
            _ => Settle::Keep,
        };
        let (bill, gate) = (std::mem::take(&mut self.bill), rules.gate.clone());
        let settle = (settle, self.units);
        if rules.is_in_memory {
            settling::correct_now(&gate, bill, settle);
            return None;
        }
        let mut each: Vec<Settling> = Vec::new();
        if settle.0 != Settle::Keep {
            each.push(Box::pin(settling::correct(gate, bill, settle)));
        }
        if let Some(places) = self.places.take() {
            each.push(Box::pin(places.release()));
        }
        // Nobody waits only for what others have left behind.
        let others = std::mem::replace(&mut self.others, Others::None);
        match (each.is_empty(), others) {
            (true, _) => return None,
            (false, Others::GivenBack(others)) => each.push(others),
            (false, Others::Unknown | Others::None) => {}
        }
        Some(Box::pin(settling::all(each)))
    }

    /// Tells what is left.
    pub(in crate::limit) fn conclude<R>(
        self,
        rules: &Rules,
        mut response: Response<R>,
    ) -> Response<Answered<R>> {
        if let (Some(binding), true) = (&self.binding, self.settings.dialect != Dialect::None) {
            let promise = rules.promise(binding);
            put_left(response.headers_mut(), self.settings.dialect, promise.spoken(&binding.decision));
        }
        response.map(|body| match self.places {
            None => Answered::theirs(body),
            Some(places) => Answered::theirs_holding(body, Box::new(places) as Held),
        })
    }

    pub(in crate::limit) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }
}
