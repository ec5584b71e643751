//! The rules in their simplest form: lists that are searched again at each step.

/// The settings.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) limit: u64,
    pub(super) shares: Vec<u8>,
    pub(super) line: usize,
    pub(super) newest_first_after: Option<u64>,
}

/// The result of a caller so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Waits,
    In,
    NoPlace,
    LineFull,
    TimedOut,
    PushedOut,
}

/// A caller of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) class: usize,
    pub(super) deadline: Option<u64>,
    pub(super) fate: Fate,
}

/// The rules as the documentation states them.
pub(super) struct Model {
    pub(super) plan: Plan,
    pub(super) now: u64,
    pub(super) busy_since: Option<u64>,
    /// The callers in the order of arrival; `None` for one that has left.
    pub(super) callers: Vec<Option<Caller>>,
}

impl Model {
    pub(super) fn count(&self, class: usize, fate: Fate) -> u64 {
        let is_it = |caller: &&Caller| caller.class == class && caller.fate == fate;
        self.callers.iter().flatten().filter(is_it).count() as u64
    }

    fn total(&self, fate: Fate) -> u64 {
        (0..self.plan.shares.len()).map(|class| self.count(class, fate)).sum()
    }

    fn reserves(&self) -> Vec<u64> {
        let limit = self.plan.limit;
        let mut reserves: Vec<_> =
            self.plan.shares.iter().map(|share| limit * u64::from(*share) / 100).collect();
        for class in 0..reserves.len() {
            let sum: u64 = reserves.iter().sum();
            if self.plan.shares[class] > 0 && reserves[class] == 0 && sum + 1 < limit {
                reserves[class] = 1;
            }
        }
        reserves
    }

    fn may_enter(&self, class: usize) -> bool {
        let reserves = self.reserves();
        let used = |class: usize| self.count(class, Fate::In);
        let claimed: u64 = (0..reserves.len()).map(|class| used(class).max(reserves[class])).sum();
        self.total(Fate::In) < self.plan.limit && (used(class) < reserves[class] || claimed < self.plan.limit)
    }

    fn is_overload(&self) -> bool {
        let busy = self.busy_since.filter(|_| self.total(Fate::Waits) > 0).map(|since| self.now - since);
        self.plan.newest_first_after.is_some_and(|longest| busy.is_some_and(|busy| busy >= longest))
    }

    /// Returns the waiters of a class, in the order of arrival.
    fn waiting(&self, class: usize) -> Vec<usize> {
        let waits = |index: &usize| {
            self.callers[*index].is_some_and(|caller| caller.class == class && caller.fate == Fate::Waits)
        };
        (0..self.callers.len()).filter(waits).collect()
    }

    fn set_fate(&mut self, index: usize, fate: Fate) {
        if let Some(caller) = &mut self.callers[index] {
            caller.fate = fate;
        }
    }

    pub(super) fn arrive(&mut self, class: usize, max_wait: Option<u64>, may_wait: bool) -> Fate {
        let fate = if self.may_enter(class) {
            Fate::In
        } else if !may_wait || max_wait == Some(0) || self.plan.line == 0 {
            Fate::NoPlace
        } else if self.total(Fate::Waits) < self.plan.line as u64 || self.push_out(class) {
            if self.total(Fate::Waits) == 0 {
                self.busy_since = Some(self.now);
            }
            Fate::Waits
        } else {
            Fate::LineFull
        };
        let deadline = max_wait.map(|max_wait| self.now + max_wait);
        self.callers.push(Some(Caller { class, deadline, fate }));
        fate
    }

    fn push_out(&mut self, newcomer: usize) -> bool {
        let is_overload = self.is_overload();
        let reserves = self.reserves();
        let first = if is_overload { 0 } else { newcomer + 1 };
        for class in (first..reserves.len()).rev() {
            let waiting = self.waiting(class);
            let wanted = waiting.len() as u64 + u64::from(class == newcomer) + self.count(class, Fate::In);
            if wanted > reserves[class].max(self.count(class, Fate::In)) {
                let served_last = if is_overload { waiting.first() } else { waiting.last() };
                let Some(served_last) = served_last else { return false };
                self.set_fate(*served_last, Fate::PushedOut);
                return true;
            }
        }
        false
    }

    pub(super) fn serve(&mut self) {
        for class in 0..self.plan.shares.len() {
            while self.may_enter(class) {
                let is_overload = self.is_overload();
                let waiting = self.waiting(class);
                let turn = if is_overload { waiting.last() } else { waiting.first() };
                let Some(turn) = turn else { break };
                self.set_fate(*turn, Fate::In);
            }
        }
    }

    pub(super) fn pass(&mut self, time: u64) {
        self.now += time;
        for index in 0..self.callers.len() {
            let is_over = |caller: &Caller| {
                caller.fate == Fate::Waits && caller.deadline.is_some_and(|deadline| deadline <= self.now)
            };
            if self.callers[index].as_ref().is_some_and(is_over) {
                self.set_fate(index, Fate::TimedOut);
            }
        }
    }
}
