//! A limit that comes with each request.
//!
//! Each limit has a limiter of its own on the same zone, named by the limit's text. With one name for all of them each
//! would be a change of the limit before, from which counts are carried over; here other numbers start full.
//! So many limiters are kept as most programs have limits. One that is not kept is made anew for each request and finds
//! all that is owed in the zone, but not the queue of those that wait.

use std::sync::{Arc, PoisonError, RwLock};

use tidegate::{Limit, Limiter, Zone};

use super::fixed::Fixed;
use super::paused::Step;
use super::service::Beginning;
use super::settings::Settings;
use crate::head::Head;
use crate::key::{Identified, Identify, Parts};

/// A limit, and who decides under it.
type Known = (Limit, Arc<Fixed>);
type LimitOf = dyn Fn(Head<'_>) -> Limit + Send + Sync;

/// How many limits have a limiter that stays.
const MOST: usize = 64;

/// A limit that comes with each request; clones share what was counted.
#[derive(Clone)]
pub(super) struct Each {
    zone: Zone,
    key: Arc<dyn Identify>,
    limit: Arc<LimitOf>,
    name: Arc<str>,
    known: Arc<RwLock<Vec<Known>>>,
}

impl Each {
    pub(super) fn new(zone: &Zone, key: Arc<dyn Identify>, limit: Arc<LimitOf>) -> Each {
        Each { zone: zone.clone(), key, limit, name: "".into(), known: Arc::default() }
    }

    pub(super) fn named(self, name: &str) -> Each {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        // The limiters stay, and with them the lines of those who wait.
        let renamed = known.into_iter().map(|(limit, by)| (limit, Arc::new(Fixed::clone(&by).named(name))));
        Each { name: name.into(), known: Arc::new(RwLock::new(renamed.collect())), ..self }
    }

    pub(super) fn begin(&self, settings: &Arc<Settings>, head: Head<'_>, units: u64) -> Beginning {
        match self.key.identify(head) {
            Identified::Now(parts) => self.ask(settings, head, &parts, units),
            Identified::Later(parts) => Beginning::pause(Step::Identify(parts, units)),
        }
    }

    /// Decides about a request whose key is known.
    pub(super) fn ask(
        &self,
        settings: &Arc<Settings>,
        head: Head<'_>,
        key: &Parts<'_>,
        units: u64,
    ) -> Beginning {
        match settings.uncounted(head, key) {
            Some(beginning) => beginning,
            None => self.by(&(self.limit)(head)).ask(settings, head, key, units),
        }
    }

    /// Who decides under this limit.
    fn by(&self, limit: &Limit) -> Arc<Fixed> {
        let found =
            |known: &[Known]| known.iter().find(|(one, _)| one == limit).map(|(_, by)| Arc::clone(by));
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(by) = found(&known) {
            return by;
        }
        drop(known);
        let limiter = Limiter::on(&self.zone, &limit.to_string(), *limit);
        let by = Arc::new(Fixed::one_of_many(limiter, Arc::clone(&self.key)).named(&self.name));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(by) = found(&known) {
            return by; // another request was faster
        }
        if known.len() < MOST {
            known.push((*limit, Arc::clone(&by)));
        }
        by
    }
}
