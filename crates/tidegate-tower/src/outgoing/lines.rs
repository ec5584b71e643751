//! All lines of a layer: which call belongs to which, and when to look again.
//!
//! There are so many lines at most. A place whose line is over (nobody waits, nothing is on its way, nothing that was
//! learned still counts) is forgotten first, then the one with most left of its quotas. When all lines hold somebody
//! back, newcomers share one: they may then wait for each other's sake, and none leaves too early. Who shares is
//! remembered, so that nobody else waits for their sake once there is room again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::task::Waker;
use std::time::Duration;

use tidegate::{Key, Ticks, Timestamp};

use super::course::Terms;
use super::held::{Held, Reason};
use super::line::{Afterwards, Exit, Line};
use super::told::Told;

/// How many places are kept apart.
pub(super) const MAX_KEYS: usize = 1024;

/// How many times as many as in one line may wait in all.
const LINES: usize = 16;

/// By less than this a clock wavers rather than steps; if that counted, many times a little would end a hold too early.
const STEP: Ticks = Ticks::saturating_from(Duration::from_millis(1));

/// The line that places share for which there is none.
const SHARED: u64 = 0;

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) number: u64,
    pub(super) deadline: Option<Timestamp>,
}

/// What becomes of a call that comes.
#[derive(Debug)]
pub(super) enum Entered {
    Leaves(Place, Exit),
    Waits(Place),
    Fails(Held),
}

#[derive(Debug)]
pub(super) struct Lines {
    by_number: BTreeMap<u64, Line>,
    numbers: HashMap<Key, u64>,
    /// Whose calls stood in the shared line, while what was learned there counts.
    sharing: HashSet<Key>,
    /// When the first of each line may leave, soonest first.
    due: BTreeSet<(Timestamp, u64)>,
    next: u64,
    waiting: usize,
    /// When the clock was asked to call.
    alarm: Option<Timestamp>,
    /// The time that was seen last.
    seen: Timestamp,
}

impl Lines {
    pub(super) fn new() -> Lines {
        Lines {
            by_number: BTreeMap::from([(SHARED, Line::of(None))]),
            numbers: HashMap::new(),
            sharing: HashSet::new(),
            due: BTreeSet::new(),
            next: SHARED + 1,
            waiting: 0,
            alarm: None,
            seen: Timestamp::EPOCH,
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    fn next_number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// A call comes: it leaves at once, stands in line, or fails.
    pub(super) fn enter(
        &mut self,
        terms: &Terms,
        now: Timestamp,
        key: &Key,
        (most, deadline): (usize, Option<Timestamp>),
    ) -> Entered {
        let line = self.line_for(terms, now, key);
        let place = Place { line, number: self.next_number(), deadline };
        let waiting = self.waiting;
        let line = self.by_number.get_mut(&place.line).expect("the line was found or made just now");
        if let Some(exit) = line.leave_at_once(terms, now) {
            return Entered::Leaves(place, exit);
        }
        if line.waiting() >= most || waiting >= most.saturating_mul(LINES) {
            return Entered::Fails(Held::new(Reason::LineFull, None));
        }
        if let Err(held) = line.join(terms, now, (place.number, deadline)) {
            return Entered::Fails(held);
        }
        self.waiting += 1;
        Entered::Waits(place)
    }

    /// The line of this key: its own, one that is made for it, or the shared one.
    fn line_for(&mut self, terms: &Terms, now: Timestamp, key: &Key) -> u64 {
        if let Some(line) = self.numbers.get(key) {
            return *line;
        }
        if !self.sharing.is_empty() {
            if self.by_number.get_mut(&SHARED).is_some_and(|line| line.is_idle(terms, now)) {
                self.sharing.clear();
            }
            if self.sharing.contains(key) {
                return SHARED;
            }
        }
        if self.numbers.len() >= MAX_KEYS && !self.forget_idle(terms, now) && !self.forget_loosest(terms, now)
        {
            if self.sharing.len() < MAX_KEYS {
                self.sharing.insert(key.clone());
            }
            return SHARED;
        }
        let line = self.next_number();
        self.numbers.insert(key.clone(), line);
        self.by_number.insert(line, Line::of(Some(key.clone())));
        line
    }

    /// Forgets the lines that are over; whether there were any.
    fn forget_idle(&mut self, terms: &Terms, now: Timestamp) -> bool {
        let numbers = &mut self.numbers;
        let before = numbers.len();
        self.by_number.retain(|_, line| {
            let Some(key) = &line.key else { return true };
            let key = key.clone();
            let is_idle = line.is_idle(terms, now);
            if is_idle {
                numbers.remove(&key);
            }
            !is_idle
        });
        numbers.len() < before
    }

    /// Forgets the line that would hold nobody back for longest; whether there was one.
    fn forget_loosest(&mut self, terms: &Terms, now: Timestamp) -> bool {
        let loosest = self.by_number.iter_mut().filter(|(_, line)| line.key.is_some());
        let loosest = loosest.filter_map(|(number, line)| Some((line.looseness(terms, now)?, *number))).max();
        let Some((_, number)) = loosest else { return false };
        let key = self.by_number.remove(&number).and_then(|line| line.key);
        key.is_some_and(|key| self.numbers.remove(&key).is_some())
    }

    /// Works on one line, then lets leave who may.
    fn on<R>(
        &mut self,
        (terms, now): (&Terms, Timestamp),
        number: u64,
        after: &mut Afterwards,
        work: impl FnOnce(&mut Line, &mut Afterwards) -> R,
    ) -> Option<R> {
        let line = self.by_number.get_mut(&number)?;
        let (due, waited) = (line.due, line.waiting());
        let result = work(line, after);
        line.serve(terms, now, after);
        if line.due != due {
            due.map(|due| self.due.remove(&(due, number)));
            line.due.map(|due| self.due.insert((due, number)));
        }
        self.waiting = self.waiting + line.waiting() - waited;
        Some(result)
    }

    /// Lets leave who may of one line.
    pub(super) fn serve(&mut self, at: (&Terms, Timestamp), line: u64, after: &mut Afterwards) {
        self.on(at, line, after, |_, _| ());
    }

    /// Notes the time; if the clock has stepped back, looks at everybody who waits.
    pub(super) fn see(&mut self, (terms, now): (&Terms, Timestamp), after: &mut Afterwards) {
        let by = self.seen.since(now);
        self.seen = now;
        if by > Ticks::ZERO {
            if by >= STEP {
                self.by_number.values_mut().for_each(|line| line.step_back(by));
            }
            self.serve_until((terms, now), Timestamp::LAST, after);
        }
    }

    /// Lets leave whose time has come.
    pub(super) fn serve_due(&mut self, (terms, now): (&Terms, Timestamp), after: &mut Afterwards) {
        self.serve_until((terms, now), now, after);
    }

    fn serve_until(&mut self, at: (&Terms, Timestamp), until: Timestamp, after: &mut Afterwards) {
        let due: Vec<u64> =
            self.due.iter().take_while(|(due, _)| *due <= until).map(|(_, line)| *line).collect();
        for line in due {
            self.serve(at, line, after);
        }
    }

    /// What became of one that waits.
    pub(super) fn poll(
        &mut self,
        place: Place,
        waker: Waker,
        after: &mut Afterwards,
    ) -> Option<Result<Exit, Held>> {
        self.by_number.get_mut(&place.line)?.poll(place.number, waker, after)
    }

    /// One that waits goes away.
    pub(super) fn abandon(&mut self, at: (&Terms, Timestamp), place: Place, after: &mut Afterwards) {
        self.on(at, place.line, after, |line, after| line.abandon(at.0, at.1, place.number, after));
    }

    /// One that was let go goes away without having left.
    pub(super) fn take_back(
        &mut self,
        at: (&Terms, Timestamp),
        place: Place,
        exit: Exit,
        after: &mut Afterwards,
    ) {
        self.on(at, place.line, after, |line, _| line.take_back(at.0, at.1, exit));
    }

    /// One that was let go leaves only now; or stands in line again, if it has to be asked again.
    pub(super) fn confirm(
        &mut self,
        at: (&Terms, Timestamp),
        place: Place,
        exit: Exit,
        after: &mut Afterwards,
    ) -> Option<Exit> {
        // Without its line nobody knows whether it may leave.
        let line = self.by_number.get_mut(&place.line).expect("a line stays while a call of it is leaving");
        if line.leaves(at.0, at.1, &exit) {
            return Some(exit);
        }
        self.on(at, place.line, after, |line, _| {
            line.rejoin(at.0, at.1, exit, (place.number, place.deadline));
        });
        None
    }

    /// A call has ended.
    pub(super) fn ended(
        &mut self,
        at: (&Terms, Timestamp),
        (place, exit): (Place, &Exit),
        (told, chance): (&Told, u64),
        after: &mut Afterwards,
    ) {
        self.on(at, place.line, after, |line, _| line.ended(at.0, at.1, exit, (told, chance)));
    }

    /// Nobody can be woken any more.
    pub(super) fn fail_all(&mut self, after: &mut Afterwards) {
        self.due.clear();
        self.waiting = 0;
        for line in self.by_number.values_mut() {
            line.fail_all(after);
        }
    }

    /// When the clock has to call, if it does not know yet.
    pub(super) fn next_alarm(&mut self) -> Option<Timestamp> {
        let (at, _) = *self.due.first()?;
        if self.alarm.is_some_and(|alarm| alarm <= at) {
            return None;
        }
        self.alarm = Some(at);
        self.alarm
    }

    pub(super) fn forget_alarm(&mut self) {
        self.alarm = None;
    }

    pub(super) fn keys(&self) -> usize {
        self.numbers.len()
    }
}
