//! Limits that come with requests.
//!
//! Each limit has a limiter of its own on the same zone, named by the limit's text. Under one name for all of them,
//! each would be a change of the previous limit and take over its counts; here each limit starts full. The first 64
//! limits keep their limiter. The limiter of any other limit is made again for each request: it finds the debts in the
//! zone, but not the queue of waiters.

use std::sync::{Arc, PoisonError, RwLock};

use tidegate_core::{Limit, Limiter, Zone};

use super::named_limiter::{LimiterStates, NamedLimiter};
use crate::head::Head;

/// A limit and its limiter.
type KnownLimiter = (Limit, Arc<NamedLimiter>);
type LimitOf = dyn Fn(Head<'_>) -> Limit + Send + Sync;

/// The maximum number of limits that keep their limiter.
const MAX_KNOWN: usize = 64;

/// The limiters of limits that come with requests; clones share the counts.
#[derive(Clone)]
pub(super) struct PerRequest {
    zone: Zone,
    limit: Arc<LimitOf>,
    name: Arc<str>,
    known: Arc<RwLock<Vec<KnownLimiter>>>,
}

impl PerRequest {
    /// Returns limiters in this zone, without any limit known yet.
    pub(super) fn new(zone: &Zone, name: &str, limit: Arc<LimitOf>) -> PerRequest {
        PerRequest { zone: zone.clone(), limit, name: name.into(), known: Arc::default() }
    }

    /// Returns the same limiters under another name. Only header fields change.
    pub(super) fn named(&self, name: &str) -> PerRequest {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        // The limiters stay, and with them their queues.
        let renamed = known.iter().map(|(limit, limiter)| (*limit, Arc::new(limiter.named(name))));
        let known = Arc::new(RwLock::new(renamed.collect()));
        PerRequest { zone: self.zone.clone(), limit: Arc::clone(&self.limit), name: name.into(), known }
    }

    /// Returns the limiter of the limit that comes with this request.
    pub(super) fn limiter_of(&self, head: Head<'_>) -> Arc<NamedLimiter> {
        let limit = (self.limit)(head);
        let found = |known: &[KnownLimiter]| {
            known.iter().find(|(one, _)| *one == limit).map(|(_, limiter)| Arc::clone(limiter))
        };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(limiter) = found(&known) {
            return limiter;
        }
        drop(known);
        let limiter = Limiter::on(&self.zone, &limit.to_string(), limit);
        let limiter = Arc::new(NamedLimiter::new(LimiterStates::PerKey(limiter), &self.name));
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(limiter) = found(&known) {
            return limiter; // another request was faster
        }
        if known.len() < MAX_KNOWN {
            known.push((limit, Arc::clone(&limiter)));
        }
        limiter
    }
}
