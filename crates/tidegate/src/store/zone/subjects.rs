//! A zone as limiters use it: by the hash of a name.

use super::change::{Adjust, GiveBack, Refuse, Spend, Take, Undo};
use super::core::Who;
use super::memo::{Owner, ShortName, spot_of};
use super::sip::Sip;
use super::table::{Spot, Table};
use super::{WhenFull, Zone};
use crate::algorithm::{Algorithm, OneWord, State};
use crate::ask::{Adjusted, Adjustment, Ask};
use crate::decision::Decision;
use crate::key::IntoKey;
use crate::limit::Terms;
use crate::receipt::Receipt;
use crate::store::name::{Account, Namespace};
use crate::store::{Holder, Map};
use crate::time::{Source, Timestamp};

/// The algorithms whose states may fit a word; others have higher numbers.
const ONE_WORD: [Algorithm; 3] = [Algorithm::TokenBucket, Algorithm::LeakyBucket, Algorithm::FixedWindow];

/// No subject of a map takes fewer bytes, so that its bytes bound it and not its keys.
const LEAST_PER_KEY: usize = 64;

/// Runs the same line for whichever algorithm of one word it is.
macro_rules! with_word {
    ($all:expr, $terms:ident => $line:expr) => {
        match $all {
            Terms::TokenBucket($terms) => $line,
            Terms::LeakyBucket($terms) => $line,
            Terms::FixedWindow($terms) => $line,
            _ => unreachable!("a map holds states that do not fit a word"),
        }
    };
}
pub(super) use with_word;

/// The hash of what the names of a limit's subjects begin with, for each algorithm.
#[derive(Debug)]
pub(crate) struct Prefixes([(Sip, Owner); ONE_WORD.len()]);

impl Prefixes {
    /// Where a subject is kept, which is on its way if it was not asked for just now.
    #[inline(always)]
    pub(super) fn spot(&self, table: &Table, algorithm: Algorithm, key: &(impl IntoKey + ?Sized)) -> Spot {
        let Some(part) = key.only_part() else { return self.begin(table, algorithm, key) };
        match ShortName::new(part) {
            Some(name) => spot_of(self.0[algorithm as usize].1, name, || self.begin(table, algorithm, part)),
            None => self.begin(table, algorithm, part),
        }
    }

    /// Hashes a name, and asks for the cells where it may be kept.
    #[inline(never)]
    fn begin(&self, table: &Table, algorithm: Algorithm, key: &(impl IntoKey + ?Sized)) -> Spot {
        let spot = table.spot(self.hash(algorithm, key));
        table.prefetch(&spot);
        spot
    }

    /// The hash of a subject's name.
    #[inline(always)]
    pub(super) fn hash(&self, algorithm: Algorithm, key: &(impl IntoKey + ?Sized)) -> [u64; 2] {
        let mut sip = self.0[algorithm as usize].0;
        match key.only_part() {
            Some(part) => sip.write_part(part),
            None => key.each_part(&mut |part| sip.write_part(part)),
        }
        sip.finish()
    }
}

impl Zone {
    /// Who holds the states of this limit: the zone, or the map beside it.
    #[inline]
    pub(crate) fn holder(&self, terms: &Terms) -> Holder<'_> {
        if terms.fits_word() { Holder::Zone(self) } else { Holder::Map(self.map()) }
    }

    /// The same, prepared for a limit that was not announced.
    pub(crate) fn ready_for(&self, account: &Account) -> Holder<'_> {
        let holder = self.holder(account.terms());
        if let Holder::Zone(zone) = holder {
            zone.expect(account.terms());
        }
        holder
    }

    fn map(&self) -> &Map {
        self.inner.map.get_or_init(|| {
            let map = Map::on_clock(self.inner.core.clock.clone());
            match self.inner.map_bytes {
                Some(bytes) => map.max_keys(bytes / LEAST_PER_KEY).max_bytes(bytes),
                None => map,
            }
        })
    }

    pub(crate) fn clock(&self) -> &Source {
        &self.inner.core.clock
    }

    #[inline]
    pub(crate) fn expect(&self, terms: &Terms) {
        self.inner.core.expect(with_word!(terms, terms => terms.longest_debt()));
    }

    pub(crate) fn prefixes(&self, namespace: &Namespace) -> Prefixes {
        Prefixes(
            ONE_WORD.map(|algorithm| (begin(self.inner.seed, &namespace.prefix(algorithm)), Owner::new())),
        )
    }

    /// Decides and spends if allowed: the hot path, which needs no name to be written down.
    #[inline]
    pub(crate) fn spend_on(
        &self,
        prefixes: &Prefixes,
        key: &(impl IntoKey + ?Sized),
        (terms, when_full): (&Terms, WhenFull),
        ask: Ask,
    ) -> Decision {
        let core = &self.inner.core;
        let spot = prefixes.spot(&core.table, terms.algorithm(), key);
        with_word!(terms, terms => {
            core.settle(&Who { spot: &spot, terms, when_full, at: None }, &Spend(ask))
        })
    }

    pub(crate) fn spend(&self, account: &Account, ask: Ask) -> Decision {
        let spot = self.spot(account);
        with_word!(account.terms(), terms => self.inner.core.settle(&who(&spot, account, terms), &Spend(ask)))
    }

    /// Decides as of a reading of the clock from a moment ago; that becomes a later one if it was too long ago.
    pub(crate) fn spend_as_of(&self, account: &Account, ask: Ask, at: &mut Timestamp) -> Decision {
        let spot = self.spot(account);
        with_word!(account.terms(), terms => {
            self.inner.core.settle_as_of(at, &who(&spot, account, terms), ask)
        })
    }

    pub(crate) fn take_from(&self, account: &Account, ask: Ask) -> (Decision, Option<Receipt>) {
        self.take_if_free(account, ask, None)
    }

    pub(crate) fn take_if_free(
        &self,
        account: &Account,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<Receipt>) {
        let spot = self.spot(account);
        let (decision, receipt) = with_word!(account.terms(), terms => {
            self.inner.core.settle(&Who { at, ..who(&spot, account, terms) }, &Take(ask))
        });
        let algorithm = Some(account.terms().algorithm());
        (decision, receipt.map(|receipt| Receipt { algorithm, ..receipt }))
    }

    pub(crate) fn look(&self, account: &Account, ask: Ask) -> Decision {
        self.look_as_of(account, ask, None)
    }

    /// The same as of a reading of the clock from a moment ago, if there is one.
    pub(crate) fn look_as_of(&self, account: &Account, ask: Ask, at: Option<Timestamp>) -> Decision {
        let spot = self.spot(account);
        with_word!(account.terms(), terms => {
            self.inner.core.look(&Who { at, ..who(&spot, account, terms) }, ask)
        })
    }

    /// Lets a limit see that it has refused, now or as of the given time.
    pub(crate) fn refuse(&self, account: &Account, ask: Ask, at: Option<Timestamp>) -> Decision {
        let spot = self.spot(account);
        with_word!(account.terms(), terms => {
            self.inner.core.settle(&Who { at, ..who(&spot, account, terms) }, &Refuse(ask))
        })
    }

    pub(crate) fn adjust_in(&self, account: &Account, adjustment: Adjustment) -> Adjusted {
        let spot = self.spot(account);
        with_word!(account.terms(), terms => {
            self.inner.core.settle(&who(&spot, account, terms), &Adjust(adjustment))
        })
    }

    pub(crate) fn give_back_to(&self, account: &Account, receipt: Receipt) -> Adjusted {
        if receipt.algorithm.is_some_and(|algorithm| algorithm != account.terms().algorithm()) {
            return Adjusted::Capped;
        }
        let spot = self.spot(account);
        with_word!(account.terms(), terms => {
            self.inner.core.settle(&who(&spot, account, terms), &GiveBack(receipt))
        })
    }

    /// Makes one take of several undone, of which another was refused.
    pub(crate) fn undo(&self, account: &Account, receipt: Receipt) -> Adjusted {
        let spot = self.spot(account);
        with_word!(account.terms(), terms => self.inner.core.settle(&who(&spot, account, terms), &Undo(receipt)))
    }

    pub(crate) fn state_of(&self, account: &Account) -> State {
        let spot = self.spot(account);
        let word = with_word!(account.terms(), terms => self.inner.core.word(&spot, terms));
        word.map_or_else(State::default, |word| account.terms().state_of_word(word))
    }

    /// Forgets a subject, whatever the algorithm. Whether anything was known about it.
    pub(crate) fn forget(&self, account: &Account) -> bool {
        let mut was_known = false;
        for bytes in account.bytes_of_all() {
            let (prefix, key) = bytes.split_at(account.name().key_at());
            let mut receipts = self.inner.receipts.lock(&bytes);
            was_known |= self.inner.core.forget(&self.spot_of(prefix, key));
            receipts.forget();
        }
        was_known | self.inner.map.get().is_some_and(|map| map.forget(account))
    }

    pub(super) fn spot(&self, account: &Account) -> Spot {
        let (prefix, key) = account.bytes().split_at(account.name().key_at());
        self.spot_of(prefix, key)
    }

    fn spot_of(&self, prefix: &[u8], key: &[u8]) -> Spot {
        let mut sip = begin(self.inner.seed, prefix);
        sip.write(key);
        self.inner.core.table.spot(sip.finish())
    }
}

/// The hash of what all names of a limit begin with, up to a whole word.
fn begin(seed: [u64; 2], prefix: &[u8]) -> Sip {
    let mut sip = Sip::new(seed);
    sip.write(prefix);
    sip.pad();
    sip
}

fn who<'a, W>(spot: &'a Spot, account: &Account, terms: &'a W) -> Who<'a, W> {
    Who { spot, terms, when_full: account.fate_when_full(), at: None }
}
