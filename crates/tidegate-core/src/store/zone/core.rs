//! The lock-free protocol by which a key gets a cell, keeps it, or shares an overflow cell.
//!
//! Each step reads cells, reads the clock, and replaces one cell by compare-and-swap. If the cell has changed in
//! between, the operation starts again. No step waits for another thread.
//!
//! **One cell per key.** A new key first reserves a cell: it writes its fingerprint there, tentative and with no
//! charge. Then it reads both buckets again. Of two threads that reserve a cell for the same key, at least one now sees
//! the other. All threads agree which reservation is removed: the one in the later cell. Only then is the cell
//! confirmed and charged, in one compare-and-swap. Any thread that finds a tentative cell may complete these steps for
//! the thread that wrote it.
//!
//! **No cell.** If no cell of both buckets is free, one cell of the first bucket becomes shared. It keeps its time,
//! which is from now on an upper bound of the debt of every key without a cell. Such a key is decided as if it had debt
//! until the latest shared time of its buckets. It charges the first shared cell of its first bucket, then reads both
//! buckets again. If the key has a cell by now, or a shared cell holds a later time than the decision used, the charge
//! stays and the operation starts again. A new key reads the shared cells after its tentative cell is visible, so one
//! of the two sees the other. `docs/zone.md` has the proof.
//!
//! **Earlier limits.** A state belongs to one limit. While counts of earlier limits matter, a key whose cell is clear,
//! or that has none, starts with the counts carried from its cells under those limits.
//!
//! **States of a cell.**
//!
//! ```text
//!   free --reserve--> tentative --confirm and charge--> own --time passes--> free
//!                         |                              |
//!                         `--another cell won--> free    `--no free cell for a new key--> shared --time passes--> free
//! ```
//!
//! A killed process can leave a tentative cell behind. It holds no charge, and is free after about a second.

use super::WhenFull;
use super::atomic::Cell;
use super::carry::begin_carried;
use super::cell::{Content, Kind};
use super::change::Change;
use super::counters::{Counters, Stripe, count};
use super::subjects::FindUnder;
use super::table::{BucketPair, CellSnapshot, Survey, Table, View};
use crate::algorithm::{OneWord, worst_word};
use crate::ask::Ask;
use crate::decision::Decision;
use crate::store::bound::BoundLimit;
use crate::time::{OUT_OF_ORDER, RECENT, SECOND, Source, Ticks, Timestamp};

/// The lower bound of the longest debt: a tentative cell may stay occupied for longer than any debt. Debts beyond it
/// are shortened only if no limit in use can have made them.
const LEAST_DEPTH: Ticks = Ticks::saturating_from(SECOND.saturating_mul(2));

/// The cells, the clock and the counters.
#[derive(Debug)]
pub(super) struct Core {
    /// All cells.
    pub(super) table: Table,
    /// The clock, which is read after the cells of a decision.
    pub(super) clock: Source,
    /// Striped counters of rare events, for statistics.
    pub(super) counters: Counters,
    /// The first attempt number of this process, random so that two processes do not use the same numbers.
    first_attempt: u32,
}

/// The key, the limit and the time of one cell operation. It is built for each call on the stack. `terms` and `limit`
/// describe the same limit: the first is typed, the second has its names and its history.
pub(super) struct CellOp<'a, W> {
    /// The buckets and the fingerprint of the key.
    pub(super) spot: &'a BucketPair,
    /// The parameters of its limit, typed by their algorithm.
    pub(super) terms: &'a W,
    /// The limit whose parameters `terms` are.
    pub(super) limit: &'a BoundLimit,
    /// The key, used to find its cells under earlier limits; `None` if nothing is carried.
    pub(super) key: Option<&'a dyn FindUnder>,
    /// The policy if no cell is free.
    pub(super) when_full: WhenFull,
    /// The time to decide as of, if it is not the current time.
    pub(super) at: Option<Timestamp>,
}

impl<W> CellOp<'_, W> {
    /// Returns the time to decide as of, or `now` if that time is at least `long_ago` old: the thread was suspended
    /// since it read the clock. Two ages are in use: [`OUT_OF_ORDER`] where the cell was found, [`RECENT`] where a
    /// state may have been dropped meanwhile.
    #[inline(always)]
    fn as_of(&self, now: Timestamp, long_ago: Ticks) -> Timestamp {
        self.at.filter(|at| now.since(*at) < long_ago).unwrap_or(now)
    }

    /// Returns the kind of the key's cell. Only a rule that forgets marks its cells as forgettable; a cell is marked
    /// again each time it is written.
    #[inline(always)]
    pub(super) fn kind(&self) -> Kind {
        match self.when_full {
            WhenFull::Share => Kind::Own,
            WhenFull::Forget => Kind::Forgettable,
        }
    }
}

impl Core {
    pub(super) fn new(table: Table, clock: Source, first_attempt: u32) -> Core {
        Core { table, clock, counters: Counters::new(), first_attempt }
    }

    /// Lists the limit of a key before the first state under it is written, or before a state that outlasts the listed
    /// expiry is written. From then on no debt of that length is mistaken for the trace of a clock that was set back.
    /// It is called before the compare-and-swap, so the limit is listed even if this process is killed right after it.
    #[cold]
    pub(super) fn note<W: OneWord>(&self, who: &CellOp<'_, W>, word: u64, now: Timestamp) {
        self.table.cells.deepest(who.terms.longest_debt().get());
        who.limit.note(word, now);
    }

    /// Applies a change to one key. The common case has one search, one clock reading and one compare-and-swap.
    /// Everything else is in [`Core::settle_slowly`], which is not inlined.
    #[inline(always)]
    pub(super) fn settle<W: OneWord, C: Change<W>>(&self, who: &CellOp<'_, W>, change: &C) -> C::Answer {
        if let Some((cell, content)) = self.table.find(who.spot) {
            if content.is_state() && !who.limit.may_carry_to(content.word) {
                // The clock is read after the cell: a decision as of a time before the state's would forgive too much.
                let now = who.as_of(self.clock.now(), OUT_OF_ORDER);
                if let Some(answer) = self.change_in(cell, content, who, now, change) {
                    return answer;
                }
            }
        }
        // A copy, so that rarely used fields are not written to memory in every call.
        self.settle_slowly(&CellOp { ..*who }, change)
    }

    /// Changes the state in the key's own cell. Returns `None` if the cell has changed since it was read. A change that
    /// leaves the word as it is writes nothing, so a denied hot key stays in the caches of all processors.
    #[inline(always)]
    pub(super) fn change_in<W: OneWord, C: Change<W>>(
        &self,
        cell: &Cell,
        content: Content,
        who: &CellOp<'_, W>,
        now: Timestamp,
        change: &C,
    ) -> Option<C::Answer> {
        let (answer, after) = change_own(content, who, now, change);
        if after == content {
            return Some(answer);
        }
        if who.limit.is_unnoted(after.word) {
            self.note(&CellOp { ..*who }, after.word, now);
        }
        if self.table.replace(cell, content, after) { Some(answer) } else { None }
    }

    /// Applies a change to a key whose cell was not found, or was changed by another thread. The loop ends, because an
    /// attempt fails only if another thread has made progress on these cells.
    #[inline(never)]
    pub(super) fn settle_slowly<W: OneWord, C: Change<W>>(
        &self,
        who: &CellOp<'_, W>,
        change: &C,
    ) -> C::Answer {
        let stripe = self.counters.of(who.spot.place());
        loop {
            let view = self.table.view(who.spot);
            let now = who.as_of(self.clock.now(), RECENT);
            if let Some(answer) = self.step(who, change, &view, now) {
                return answer;
            }
            count(&stripe.retries);
        }
    }

    /// Makes one attempt as of `now`, a recent reading of the clock. Returns `None` if another thread was faster. The
    /// cases in order: a cell with a state, a tentative cell of the key, a free cell, no cell but the rule forgets, no
    /// cell.
    fn step<W: OneWord, C: Change<W>>(
        &self,
        who: &CellOp<'_, W>,
        change: &C,
        view: &View<'_>,
        now: Timestamp,
    ) -> Option<C::Answer> {
        if let Some(state) = view.own().find(|own| own.content.is_state()) {
            return self.change_carrying(who, change, view, state, now);
        }
        if let Some(wanted) = view.own().min_by_key(|own| own.number) {
            return self.confirm(who, change, wanted);
        }
        let survey = view.survey(now);
        if let Some(room) = survey.room() {
            return self.move_in(who, change, view, view.sighting(room), now);
        }
        if who.when_full == WhenFull::Forget {
            count(&self.counters.of(who.spot.place()).forgotten);
            return Some(change.change(who.terms, &mut Default::default(), now));
        }
        self.share(who, change, view, &survey, now)
    }

    /// Reserves a cell for a new key, unless the change leaves nothing to store. Each attempt has a number, so that two
    /// attempts of the same key at the same time leave different contents.
    fn move_in<W: OneWord, C: Change<W>>(
        &self,
        who: &CellOp<'_, W>,
        change: &C,
        view: &View<'_>,
        free: CellSnapshot,
        now: Timestamp,
    ) -> Option<C::Answer> {
        let (answer, left) = self.begin(who, change, view, now);
        if left.is_none() {
            return Some(answer);
        }
        let stripe = self.counters.of(who.spot.place());
        let attempt = self.first_attempt.wrapping_add(count(&stripe.attempts) as u32);
        let wanted = Content::tentative(who.spot.fingerprint, now, attempt);
        if !view.replace(free, wanted) {
            return None;
        }
        if !free.content.is_free(now) {
            count(&stripe.forgotten);
        }
        self.confirm(who, change, free.with(wanted))
    }

    /// Confirms a tentative cell of a key and charges it. A state of the key in another cell wins over a tentative one,
    /// and of two tentative cells the one with the lower number wins.
    fn confirm<W: OneWord, C: Change<W>>(
        &self,
        who: &CellOp<'_, W>,
        change: &C,
        wanted: CellSnapshot,
    ) -> Option<C::Answer> {
        let view = self.table.view(who.spot);
        if !view.own().any(|own| own == wanted) {
            return None;
        }
        for other in view.own().filter(|other| other.number != wanted.number) {
            if other.content.is_state() || other.number < wanted.number {
                view.replace(wanted, Content::NOTHING);
                return None;
            }
            if !view.replace(other, Content::NOTHING) {
                return None;
            }
        }
        let now = who.as_of(self.clock.now(), RECENT);
        let (answer, left) = self.begin(who, change, &view, now);
        let Some(word) = left else {
            view.replace(wanted, Content::NOTHING);
            return Some(answer);
        };
        if who.limit.is_unnoted(word) {
            self.note(who, word, now);
        }
        if !view.replace(wanted, Content::own(who.spot.fingerprint, who.kind(), word)) {
            return None;
        }
        count(&self.counters.of(who.spot.place()).inserts);
        Some(answer)
    }

    /// Decides a key without a cell by the shared cells of its buckets, and charges the first of them. Before a cell is
    /// shared, debts that only a backward clock step can have left are shortened, because they may block all cells.
    fn share<W: OneWord, C: Change<W>>(
        &self,
        who: &CellOp<'_, W>,
        change: &C,
        view: &View<'_>,
        survey: &Survey,
        now: Timestamp,
    ) -> Option<C::Answer> {
        let stripe = self.counters.of(who.spot.place());
        if self.cut_back(view, now) {
            return None;
        }
        let Some(shared) = survey.shared.map(|index| view.sighting(index)) else {
            convert(view, survey, stripe);
            return None;
        };
        let until = survey.shared_until;
        let ask = change.ask().unwrap_or(Ask::ONE);
        let carried = self.begun_by(who, change, now).state_under(who.limit.terms(), now, ask);
        let (answer, left) = change.share(who.terms, until.max(who.limit.terms().clear_at(&carried)), now);
        if let Some(word) = left.filter(|word| who.limit.is_unnoted(*word)) {
            self.note(who, word, now);
        }
        let spent = match left {
            None => true,
            // Only an undo leaves an earlier time than before. It is exact, and is done once or not at all.
            Some(word) if word < until.ticks() => {
                shared.content.clear_at() != until || view.replace(shared, shared.content.with_word(word))
            }
            Some(word) => {
                view.replace(shared, shared.content.with_word(word))
                    && self.is_alone(who.spot, shared, until, now)
            }
        };
        if !spent {
            return None;
        }
        count(&stripe.shared_decisions);
        Some(answer)
    }

    /// Returns true if a key that was just charged in a shared cell has no other debt that the decision did not see. If
    /// it returns false, the charge stays: denying a key too much is safe, admitting it too much is not.
    fn is_alone(&self, spot: &BucketPair, shared: CellSnapshot, until: Timestamp, now: Timestamp) -> bool {
        let after = self.table.view(spot);
        after.own().next().is_none()
            && after.is_charged_in(shared, until)
            // Within `RECENT`, a cell with debt of the key at the time of the decision cannot have come and gone.
            && self.clock.now().since(now) < RECENT
    }

    /// Applies a change to a key that has no cell and could get one. Returns the word for its cell too, if the change
    /// leaves one. Counts of earlier limits and the time of shared cells both count against it.
    fn begin<W: OneWord, C: Change<W>>(
        &self,
        who: &CellOp<'_, W>,
        change: &C,
        view: &View<'_>,
        now: Timestamp,
    ) -> (C::Answer, Option<u64>) {
        begin_carried(who, change, &self.begun_by(who, change, now), view.shared_until(), now)
    }

    /// Returns the decision that an ask would get, without writing anything. The decision is the one that a take at
    /// this moment would get, including a take that would convert a cell into a shared one.
    pub(super) fn look<W: OneWord>(&self, who: &CellOp<'_, W>, ask: Ask) -> Decision {
        if let Some((_, content)) = self.table.find(who.spot) {
            if content.is_state() && !who.limit.may_carry_to(content.word) {
                let now = who.as_of(self.clock.now(), OUT_OF_ORDER);
                return who.terms.peek(&who.terms.state_of_word(content.word), now, ask);
            }
        }
        let view = self.table.view(who.spot);
        let now = who.as_of(self.clock.now(), RECENT);
        let own = view.own().find(|own| own.content.is_state());
        let own = own.map(|own| who.terms.state_of_word(own.content.word));
        if let Some(state) = own.as_ref().filter(|state| who.terms.clear_at(state) > now) {
            return self.report_own(who, state, who.terms.peek(state, now, ask), now, ask);
        }
        let begun = self.begun(who, now);
        let survey = view.survey(now);
        let until = survey.shared_until;
        let has_cell = own.is_some() || survey.room().is_some() || who.when_full == WhenFull::Forget;
        if has_cell && (own.is_some() || until <= now || who.when_full == WhenFull::Forget) {
            return match own {
                Some(state) if begun.is_full() => who.terms.peek(&state, now, ask),
                _ => begun.peek_terms(who.limit.terms(), now, ask),
            };
        }
        let carried = begun.state_under(who.limit.terms(), now, ask);
        let until = until.max(who.limit.terms().clear_at(&carried));
        if has_cell {
            return who.terms.peek(&who.terms.worst_state(until, now), now, ask);
        }
        // A take converts a cell into a shared one if there is none yet.
        let least = survey.least.filter(|_| survey.shared.is_none());
        let until = least.map_or(until, |(_, word)| until.max(Timestamp::from_ticks(word)));
        who.terms.peek_sharing(until, now, ask)
    }

    /// Returns the state of a key as a word, or `None` if nothing is stored about it. For a key without a cell it is
    /// the worst state that the shared cells permit.
    pub(super) fn word<W: OneWord>(&self, spot: &BucketPair, terms: &W) -> Option<u64> {
        let view = self.table.view(spot);
        let state = view.own().find(|own| own.content.is_state());
        let (until, now) = (view.shared_until(), self.clock.now());
        match state {
            Some(state) => Some(state.content.word),
            None if until > now => Some(terms.word_of(&terms.worst_state(until, now))),
            None => None,
        }
    }

    /// Removes the state of a key that has a cell of its own. Returns true if it had debt. It repeats until no cell of
    /// the key is left, also those that other threads reserve meanwhile.
    pub(super) fn forget(&self, spot: &BucketPair) -> bool {
        let mut was_live = false;
        loop {
            let view = self.table.view(spot);
            let Some(own) = view.own().next() else { return was_live };
            let is_gone = view.replace(own, Content::NOTHING);
            was_live |= is_gone && own.content.is_state() && own.content.clear_at() > self.clock.now();
        }
    }

    /// Shortens debts that no limit can have made, which are the trace of a clock that was set back. Returns true if
    /// there were any. The bound is the longest debt of any limit in use, by all processes of the file.
    fn cut_back(&self, view: &View<'_>, now: Timestamp) -> bool {
        let deepest = now.saturating_add(Ticks::new(self.table.cells.deepest(LEAST_DEPTH.get())));
        let mut any = false;
        for late in view.later_than(deepest.saturating_add(OUT_OF_ORDER)) {
            view.replace(late, late.content.with_word(worst_word(deepest)));
            any = true;
        }
        any
    }
}

/// Changes the state in a key's own cell. A change that leaves the word the same leaves the cell the same, because it
/// was valid when it was read. A cell that is written gets the kind that its rule has now.
#[inline(always)]
pub(super) fn change_own<W: OneWord, C: Change<W>>(
    content: Content,
    who: &CellOp<'_, W>,
    now: Timestamp,
    change: &C,
) -> (C::Answer, Content) {
    let mut state = who.terms.state_of_word(content.word);
    let answer = change.change(who.terms, &mut state, now);
    let word = who.terms.word_of(&state);
    let after =
        if word == content.word { content } else { Content::own(who.spot.fingerprint, who.kind(), word) };
    (answer, after)
}

/// Converts the cell of the first bucket with the least debt into a shared one. The cell with the least debt costs its
/// owner and all sharers the least wait.
fn convert(view: &View<'_>, survey: &Survey, stripe: &Stripe) {
    match survey.least {
        Some((least, word)) => {
            if view.replace(view.sighting(least), Content::shared(word)) {
                count(&stripe.conversions);
            }
        }
        // All of them are tentative: nothing is charged there, and the threads that reserved them start again.
        None => {
            view.wanted().map(|wanted| view.replace(wanted, Content::NOTHING));
        }
    }
}
