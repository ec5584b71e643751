//! The zone's interface for limiters, which finds keys by their hash.
//!
//! ```text
//!   seed -> limit -> namespace -> [prefix] -> key -> hash: 64 bits for two buckets, 62 bits for the fingerprint
//!           once per bound limit              per decision
//! ```
//!
//! A zone stores no name. A key is recognized by its fingerprint and its buckets, under a secret seed. Two keys share a
//! state only if their 62-bit fingerprints are equal and they have a bucket in common.
//!
//! Methods with an account get an encoded key, and so do methods of stores. A limiter uses [`Zone::spend_on`], which
//! hashes the parts of a key in place. Both find the same cells.

use std::sync::Arc;

use super::change::{Adjust, Change, GiveBack, Refuse, Spend, Take, TakeOff};
use super::core::CellOp;
use super::memo::{Owner, ShortName, spot_of};
use super::sip::Sip;
use super::table::{BucketPair, Table};
use super::{WhenFull, Zone};
use crate::algorithm::{Calendar, Claim, FixedWindow, LeakyBucket, State, TakenOff, TokenBucket};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::Decision;
use crate::key::IntoKey;
use crate::limit::AlgorithmParams;
use crate::receipt::Receipt;
use crate::store::bound::{BoundLimit, StateName};
use crate::store::limit_table::{LimitTable, StateLimit};
use crate::store::receipts::Receipts;
use crate::store::state_key::{EncodedKey, StateKey};
use crate::store::{Map, ReceiptCounts};
use crate::time::{Source, Timestamp};

/// The fewest bytes that a key of a map takes, so that its bytes limit the map and not its keys. A zone with a bound on
/// the bytes of its map divides them by this number for the most keys.
const LEAST_PER_KEY: usize = 64;

/// Runs the same expression for any algorithm whose state is one word.
macro_rules! with_word {
    ($all:expr, $terms:ident => $line:expr) => {
        match $all {
            AlgorithmParams::TokenBucket($terms) => $line,
            AlgorithmParams::LeakyBucket($terms) => $line,
            AlgorithmParams::FixedWindow($terms) => $line,
            AlgorithmParams::Calendar($terms) => $line,
            _ => unreachable!("a map holds states that do not fit a word"),
        }
    };
}
pub(super) use with_word;

/// The hash state after the common prefix of all state names under one limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatePrefix {
    /// The state from which each key is hashed on.
    sip: Sip,
    /// The hash of the key with no parts.
    of_no_part: [u64; 2],
}

impl StatePrefix {
    /// Hashes a limit and a namespace, padded to a whole word.
    pub(crate) fn new(seed: [u64; 2], limit: &StateLimit, namespace: &[u8]) -> StatePrefix {
        let mut sip = Sip::new(seed);
        limit.iter().for_each(|word| sip.write(&word.to_le_bytes()));
        sip.write(namespace);
        sip.pad();
        StatePrefix { sip, of_no_part: sip.finish() }
    }

    /// Returns the buckets of a key. Its cells are prefetched, unless its hash was still in the memo. Keys of one short
    /// part take the memo; longer keys and keys of several parts are hashed each time.
    #[inline(always)]
    pub(super) fn spot(&self, table: &Table, key: &(impl IntoKey + ?Sized)) -> BucketPair {
        let Some(part) = key.only_part() else { return self.begin(table, key) };
        match ShortName::new(part) {
            Some(name) => spot_of(Owner::of_parts(self.of_no_part), name, || self.begin(table, part)),
            None => self.begin(table, part),
        }
    }

    /// Returns the buckets of an encoded key.
    #[inline(always)]
    pub(super) fn spot_encoded(&self, table: &Table, key: &[u8]) -> BucketPair {
        match ShortName::new(key) {
            Some(name) => spot_of(Owner::of_keys(self.of_no_part), name, || self.begin_encoded(table, key)),
            None => self.begin_encoded(table, key),
        }
    }

    /// Hashes an encoded key, and prefetches the cells where its state may be.
    fn begin_encoded(&self, table: &Table, key: &[u8]) -> BucketPair {
        let spot = table.spot(self.hash_encoded(key));
        table.prefetch(&spot);
        spot
    }

    /// Hashes a key, and prefetches the cells where its state may be.
    #[inline(never)]
    fn begin(&self, table: &Table, key: &(impl IntoKey + ?Sized)) -> BucketPair {
        let spot = table.spot(self.hash(key));
        table.prefetch(&spot);
        spot
    }

    /// Returns the hash of a key. The result equals that of [`StatePrefix::hash_encoded`] for the encoded form of the
    /// same key.
    #[inline(always)]
    pub(super) fn hash(&self, key: &(impl IntoKey + ?Sized)) -> [u64; 2] {
        let mut sip = self.sip;
        match key.only_part() {
            Some(part) => sip.write_part(part),
            None => key.each_part(&mut |part| sip.write_part(part)),
        }
        sip.finish()
    }

    /// Returns the hash of an encoded key, in which each part is preceded by its length.
    #[inline]
    pub(crate) fn hash_encoded(&self, key: &[u8]) -> [u64; 2] {
        if key.is_empty() {
            return self.of_no_part;
        }
        let mut sip = self.sip;
        sip.write(key);
        sip.finish()
    }
}

impl Zone {
    /// Returns the map beside the zone, for states of more than one word. The first call creates it. A zone whose
    /// limits all fit a word never has one. The map shares the clock and the table of limits with the zone.
    pub(crate) fn map(&self) -> &Map {
        self.inner.map.get_or_init(|| {
            let map = Map::beside(self.inner.core.clock.clone(), Arc::clone(&self.inner.limits));
            match self.inner.map_bytes {
                Some(bytes) => map.max_keys(bytes / LEAST_PER_KEY).max_bytes(bytes),
                None => map,
            }
        })
    }

    /// Returns the clock of the zone; that of a zone in a file is shifted to the epoch of the file.
    pub(crate) fn clock(&self) -> &Source {
        &self.inner.core.clock
    }

    /// Returns the table of the limits that its namespaces have had.
    pub(crate) fn limits(&self) -> &Arc<LimitTable> {
        &self.inner.limits
    }

    /// Returns the number of receipts of tracked takes that are open in this process, and of those dropped because
    /// there were too many. The map beside the zone is included, if there is one.
    pub fn receipt_counts(&self) -> ReceiptCounts {
        let beside = self.inner.map.get().map(Map::receipt_counts);
        self.inner.receipts.counts().and(beside.unwrap_or_default())
    }

    /// Returns the table of open receipts.
    pub(crate) fn receipts(&self) -> &Receipts {
        &self.inner.receipts
    }

    /// Decides, and spends if allowed: the hot path, which does not encode the key. A known key costs one hash or memo
    /// hit, one clock reading, and one compare-and-swap. A denial is read-only.
    #[inline]
    pub(crate) fn spend_on(
        &self,
        key: &(impl IntoKey + ?Sized),
        limit: &BoundLimit,
        when_full: WhenFull,
        ask: Ask,
    ) -> Decision {
        let core = &self.inner.core;
        let spot = limit.name().prefix.spot(&core.table, key);
        let key = KeyParts(key);
        with_word!(limit.terms(), terms => {
            core.settle(&CellOp { spot: &spot, terms, limit, key: Some(&key), when_full, at: None }, &Spend(ask))
        })
    }

    /// Decides, and spends if allowed, for a key that is already encoded.
    pub(crate) fn spend(&self, account: &StateKey, ask: Ask) -> Decision {
        self.settle(account, None, &Spend(ask))
    }

    /// Decides as of `at`, a recent reading of the clock. Sets `at` to a later reading if it is too old.
    pub(crate) fn spend_as_of(&self, account: &StateKey, ask: Ask, at: &mut Timestamp) -> Decision {
        let spot = self.spot(account);
        with_word!(account.terms(), terms => {
            self.inner.core.settle_as_of(at, &who(&spot, account, terms), ask)
        })
    }

    /// Takes if allowed, now or as of the given time, and returns a receipt. A denial leaves the cell as it is, unless
    /// its debt is too large for the limit.
    pub(crate) fn take_if_free(
        &self,
        account: &StateKey,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<Receipt>) {
        let (decision, receipt) = self.settle(account, at, &Take(ask));
        let algorithm = Some(account.terms().algorithm());
        (decision, receipt.map(|receipt| Receipt { algorithm, ..receipt }))
    }

    /// Returns the decision that an ask would get, without spending, now or as of the given time.
    pub(crate) fn look(&self, account: &StateKey, ask: Ask, at: Option<Timestamp>) -> Decision {
        let spot = self.spot(account);
        with_word!(account.terms(), terms => {
            self.inner.core.look(&CellOp { at, ..who(&spot, account, terms) }, ask)
        })
    }

    /// Applies a denial to a limit's state, now or as of the given time. If the state would allow the ask by now,
    /// nothing is written, and the decision is an allowance that was not spent.
    pub(crate) fn deny(&self, account: &StateKey, ask: Ask, at: Option<Timestamp>) -> Decision {
        self.settle(account, at, &Refuse(ask))
    }

    /// Charges additional cost and returns a receipt, or refunds unused cost. A key that shares a cell cannot be
    /// refunded, because the debt there is not its own.
    pub(crate) fn adjust_in(
        &self,
        account: &StateKey,
        adjustment: Adjustment,
    ) -> (Adjusted, Option<Receipt>) {
        let (adjusted, receipt) = self.settle(account, None, &Adjust(adjustment));
        let (algorithm, terms) = (Some(account.terms().algorithm()), account.terms());
        (adjusted, receipt.map(|receipt| Receipt { algorithm, paid: terms.price(receipt.cost), ..receipt }))
    }

    /// Gives one take back, as far as it is certainly still there. A receipt of another algorithm has nothing here.
    pub(crate) fn give_back_to(&self, account: &StateKey, receipt: Receipt) -> Adjusted {
        if receipt.algorithm.is_some_and(|algorithm| algorithm != account.terms().algorithm()) {
            return Adjusted::Capped;
        }
        self.settle(account, None, &GiveBack::Rest(receipt))
    }

    /// Undoes one of several takes, of which another was denied. It is as if the take had never happened. Nothing is
    /// given back if that could invalidate a time that a later request was promised.
    pub(crate) fn undo(&self, account: &StateKey, receipt: Receipt) -> Adjusted {
        self.settle(account, None, &GiveBack::Undo(receipt))
    }

    /// Removes units of one take from its debt, as far as they are still owed. Only buckets have a queue of debts; a
    /// fixed window returns `None`.
    pub(crate) fn take_off(&self, account: &StateKey, claim: Claim, units: Cost) -> Option<TakenOff> {
        let (spot, change) = (self.spot(account), TakeOff { claim, units });
        match account.terms() {
            AlgorithmParams::TokenBucket(terms) => {
                self.inner.core.settle(&who(&spot, account, terms), &change)
            }
            AlgorithmParams::LeakyBucket(terms) => {
                self.inner.core.settle(&who(&spot, account, terms), &change)
            }
            _ => None,
        }
    }

    /// Changes the state of an account, now or as of the given time. One change serves all three algorithms with one
    /// word; the branch on the algorithm is made once, here.
    #[inline]
    fn settle<R, C>(&self, account: &StateKey, at: Option<Timestamp>, change: &C) -> R
    where
        C: Change<TokenBucket, Answer = R>
            + Change<LeakyBucket, Answer = R>
            + Change<FixedWindow, Answer = R>
            + Change<Calendar, Answer = R>,
    {
        let spot = self.spot(account);
        with_word!(account.terms(), terms => {
            self.inner.core.settle(&CellOp { at, ..who(&spot, account, terms) }, change)
        })
    }

    /// Returns a copy of the state; for a key without a cell, the worst state that the shared cells permit.
    pub(crate) fn state_of(&self, account: &StateKey) -> State {
        let spot = self.spot(account);
        let word = with_word!(account.terms(), terms => self.inner.core.word(&spot, terms));
        word.map_or_else(State::default, |word| account.terms().state_of_word(word))
    }

    /// Removes the state of a key under one limit. Returns true if there was one with debt. A shared cell is not
    /// removed, because it also stands for other keys. The receipts are locked first and become invalid.
    pub(crate) fn forget_state(&self, name: &EncodedKey, state: &StateName) -> bool {
        let spot = self.inner.core.table.spot(state.prefix.hash_encoded(name.key()));
        let mut receipts = self.inner.receipts.lock(state.digest, name.bytes());
        let was_known = self.inner.core.forget(&spot);
        receipts.forget();
        drop(receipts);
        was_known | self.inner.map.get().is_some_and(|map| map.forget_state(name, state))
    }

    /// Returns the buckets of an account's state.
    fn spot(&self, account: &StateKey) -> BucketPair {
        self.inner.core.table.spot(account.hash())
    }
}

/// A key whose cells under other limits can be found. It is used only while counts are carried. A batch has no such
/// keys, and is decided by names then. The trait is object-safe, so that a cell operation has one type for keys of
/// every kind.
pub(super) trait FindUnder {
    /// Returns the buckets of the key under this limit.
    fn spot_under(&self, table: &Table, name: &StateName) -> BucketPair;
}

/// A key that is not encoded. It is hashed again for each earlier limit.
struct KeyParts<'a, K: ?Sized>(&'a K);

impl<K: IntoKey + ?Sized> FindUnder for KeyParts<'_, K> {
    #[cold]
    fn spot_under(&self, table: &Table, name: &StateName) -> BucketPair {
        table.spot(name.prefix.hash(self.0))
    }
}

impl FindUnder for StateKey {
    #[cold]
    fn spot_under(&self, table: &Table, name: &StateName) -> BucketPair {
        table.spot(name.prefix.hash_encoded(self.name().key()))
    }
}

/// Returns the operation of an account, as of the current time.
fn who<'a, W>(spot: &'a BucketPair, account: &'a StateKey, terms: &'a W) -> CellOp<'a, W> {
    let (limit, when_full) = (account.limit(), account.fate_when_full());
    CellOp { spot, terms, limit, key: Some(account), when_full, at: None }
}
