//! Keepers of states: the pure functions with their states in a table, or a store.
//!
//! Laws, oracles and traces ask any of them through the same code. All take a [`Subject`], as stores do.

mod crowd;
#[cfg(target_os = "linux")]
mod reopened;
mod states;
mod twins;

pub use crowd::{Crowd, Sheltering};
#[cfg(target_os = "linux")]
pub use reopened::Reopened;
pub use states::States;
pub use twins::twin_zones;

use tidegate::{
    Adjusted, Adjustment, Ask, Decision, Key, Limit, PermitId, Receipt, State, Subject, Ticks, Timestamp,
};

/// Remembers any number of subjects. Time stands still unless it is set.
pub trait Keeper {
    /// Returns its name in messages.
    fn name(&self) -> &'static str;

    /// Returns true if it forgets subjects that are clear.
    fn forgets(&self) -> bool;

    /// Returns the resolution of a max wait: asks use only multiples of it.
    fn finest_max_wait(&self) -> Ticks {
        crate::ticks(1)
    }

    /// Sets the clock, forwards or back.
    fn set_time(&mut self, now: Timestamp);

    /// Decides and spends; with proof of the take, by which it can be given back.
    fn take(&mut self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>);

    /// Looks.
    fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision;

    /// Charges late or gives back.
    fn adjust(&mut self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted;

    /// Gives one take back.
    fn give_back(&mut self, subject: Subject<'_>, receipt: Receipt) -> Adjusted;

    /// Gives a place in flight back.
    fn release(&mut self, subject: Subject<'_>, permit: PermitId) -> bool;

    /// Starts a lease anew.
    fn renew(&mut self, subject: Subject<'_>, permit: PermitId) -> bool;

    /// Forgets one subject, whatever the algorithm.
    fn reset(&mut self, subject: Subject<'_>);

    /// Returns the stored state of a subject.
    fn state(&self, subject: Subject<'_>) -> State;
}

/// Returns the largest max wait that a keeper can represent and that is not above this one.
pub(crate) fn representable(keeper: &impl Keeper, max_wait: u64) -> u64 {
    max_wait - max_wait % keeper.finest_max_wait().get()
}

/// The subject of this key, among those that are judged.
pub(crate) fn judged<'a>(key: &'a Key, limit: &'a Limit) -> Subject<'a> {
    Subject::new("judged", key, limit)
}
