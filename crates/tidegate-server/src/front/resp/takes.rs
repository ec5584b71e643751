//! Batched takes: takes that arrive together are decided together. Their cells are prefetched, and the clock is read
//! once.
//!
//! Pipelines nearly always consist of takes under the same few limits. They are batched until another command follows,
//! or all input is read.
//!
//! Parsing a limit takes longer than deciding under it. A limit is therefore compared byte by byte with the last
//! one before it is parsed.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Algorithm, Ask, DynamicAsk, Limit, LimitBuilder, PreparedLimit};
use tidegate_rules::parse_limit;
use tidegate_support::RecentCache;

use super::fields::{decided, throttled};
use super::parse::Words;
use super::pending::{CommandOrder, PendingReply};
use super::reply::{Replies, UNDECIDED, echo};
use super::session::Session;
use super::throttle::ThrottleDialect;
use crate::engine::{Decided, Engine};
use crate::permit::Permits;
use crate::worker::WorkerContext;

/// The maximum number of takes of one batch.
const MAX_PENDING: usize = 64;

/// The batched takes, and the caches of recently parsed limits.
///
/// A batch ends when another command follows, when it is full, or when the input is used up. Its takes are decided
/// in one pass over the zone. Replies are written in the order of the requests.
#[derive(Debug, Default)]
pub(super) struct Takes {
    /// The batched takes, in order.
    pending: Vec<Pending>,
    /// The limits of the batched takes.
    limits: Vec<PreparedLimit>,
    /// The last limit of `CL.THROTTLE` or `THROTTLE`. Equal words of both are different limits.
    numbers: Recent<Option<ThrottleWords>>,
    /// The last limit that was given as text.
    text: Recent<Vec<u8>>,
    /// Recently used limits of both commands, by their numbers.
    known_numbers: RecentCache<(ThrottleNumbers, PreparedLimit)>,
    /// Recently used limits, by their text.
    known_texts: RecentCache<(Box<[u8]>, PreparedLimit)>,
}

/// A batched take.
#[derive(Debug)]
struct Pending {
    /// The range of the key in the input.
    key: Range<usize>,
    /// The index of the limit in `limits`.
    limit: usize,
    /// The cost and the longest acceptable wait.
    ask: Ask,
    /// The format of the reply.
    style: Style,
}

/// The format of a decision's reply.
#[derive(Clone, Copy, Debug)]
pub(super) enum Style {
    /// Five integers, as in redis-cell or throttlecrab.
    Throttle(ThrottleDialect),
    /// Named fields.
    Fields,
}

impl Style {
    /// Writes the decision about a key under a limit. Returns the permits that the reply contains.
    #[inline]
    fn write(
        self,
        replies: &mut Replies<'_>,
        outcome: &Decided,
        limit: &Limit,
        key: &[u8],
    ) -> Option<Permits> {
        match self {
            Style::Throttle(dialect) => {
                throttled(replies, outcome, dialect);
                None
            }
            Style::Fields => decided(replies, outcome, limit, key),
        }
    }
}

/// The numbers of a limit: burst (one more than the `max_burst` of `CL.THROTTLE`), count, and period in seconds.
pub(super) type ThrottleNumbers = [u64; 3];

/// The words that the numbers of a limit were parsed from.
#[derive(Debug)]
struct ThrottleWords {
    dialect: ThrottleDialect,
    /// The three words as they arrived.
    bytes: Vec<u8>,
    /// The lengths of the first two words.
    lengths: [usize; 2],
}

/// One-entry parse cache: the last limit, the bytes that it was parsed from, and its index in `limits`.
#[derive(Debug, Default)]
struct Recent<T> {
    /// The bytes that the limit was parsed from.
    read: T,
    /// The limit; `None` before the first.
    limit: Option<PreparedLimit>,
    /// Its index in `limits`, if the current batch uses it.
    index: Option<usize>,
}

impl Takes {
    /// Returns the limit of the numbers at the beginning of these words. They are not parsed again if their bytes are
    /// those of the last call, which is nearly always so.
    #[inline]
    pub(super) fn limit_of_numbers(
        &mut self,
        words: Words<'_>,
        dialect: ThrottleDialect,
        engine: &Engine,
        read: impl FnOnce(Words<'_>) -> Result<ThrottleNumbers, String>,
    ) -> Result<&PreparedLimit, String> {
        let (bytes, lengths) = (words.span(0, 2), [0, 1].map(|word| words.get(word).map_or(0, <[u8]>::len)));
        let is_known =
            self.numbers.read.as_ref().is_some_and(|known| {
                (known.dialect, &*known.bytes, known.lengths) == (dialect, bytes, lengths)
            });
        // Unquoted words are adjacent in memory, so equal bytes may be different words.
        let is_quoted = words.place(0).is_none();
        if is_quoted || !is_known {
            let numbers = read(words)?;
            let prepare = || Ok::<_, String>((numbers, accepted(throttle_limit(numbers)?, engine)?));
            let known = self.known_numbers.get_or_make(numbers, |known| known.0 == numbers, prepare);
            let limit = known?.1.clone();
            let read = Some(ThrottleWords { dialect, bytes: bytes.to_vec(), lengths });
            self.numbers = Recent { read, limit: Some(limit), index: None };
        }
        Ok(self.numbers.limit.as_ref().expect("it was just read"))
    }

    /// Returns the limit of this text, parsed only if it differs from the last one.
    ///
    /// Fails if the text is invalid, or the engine does not support the limit. The last limit stays then.
    pub(super) fn limit_of_text(&mut self, text: &[u8], engine: &Engine) -> Result<&PreparedLimit, String> {
        if self.text.limit.is_none() || self.text.read != text {
            let prepare = || Ok::<_, String>((text.into(), accepted(limit_of(text)?, engine)?));
            let known = self.known_texts.get_or_make(text, |known| *known.0 == *text, prepare);
            let limit = known?.1.clone();
            self.text = Recent { read: text.to_vec(), limit: Some(limit), index: None };
        }
        Ok(self.text.limit.as_ref().expect("it was just read"))
    }

    /// Adds a take to the batch, under the last limit of its style: from numbers for `Throttle`, from text for
    /// `Fields`.
    ///
    /// Panics if no limit of this style was parsed before.
    #[inline]
    pub(super) fn put(&mut self, key: Range<usize>, ask: Ask, style: Style) {
        let (limit, index) = match style {
            Style::Throttle(_) => (&self.numbers.limit, &mut self.numbers.index),
            Style::Fields => (&self.text.limit, &mut self.text.index),
        };
        let limit = match (*index, limit) {
            (Some(known), _) => known,
            (None, limit) => {
                let limit = limit.as_ref().expect("a take comes behind its limit");
                self.limits.push(limit.clone());
                *index.insert(self.limits.len() - 1)
            }
        };
        self.pending.push(Pending { key, limit, ask, style });
    }

    /// Returns true if the batch is full.
    #[inline]
    pub(super) fn are_many(&self) -> bool {
        self.pending.len() >= MAX_PENDING
    }

    /// Decides all batched takes, and writes the replies in order.
    ///
    /// `input` are the bytes that the keys are ranges of. With a remote store the replies become pending.
    #[inline]
    pub(super) fn settle(
        &mut self,
        input: &[u8],
        worker: &Arc<WorkerContext>,
        replies: &mut Replies<'_>,
        session: &mut Session,
    ) {
        if self.pending.is_empty() {
            return;
        }
        let limits = &self.limits;
        let key = |take: &Pending| &input[take.key.clone()];
        let asks = self.pending.iter().map(|take| DynamicAsk::new(key(take), &limits[take.limit], take.ask));
        let mut rest = self.pending.iter();
        let is_decided = worker.engine.take_each(asks, |decided| {
            if let Some(take) = rest.next() {
                worker.decided(key(take), &decided);
                let permits = take.style.write(replies, &decided, limits[take.limit].limit(), key(take));
                session.unsent.note(permits, &worker.engine);
            }
        });
        for take in rest {
            if is_decided {
                replies.error(UNDECIDED);
            } else {
                let (key, limit) = (key(take).to_vec(), limits[take.limit].clone());
                let (ask, style, worker, protocol) = (take.ask, take.style, worker.clone(), session.protocol);
                session.answer_when_known(replies, CommandOrder::Together, async move {
                    let decided = worker.engine.take(&key, &limit, ask).await;
                    PendingReply::new(decided, protocol, &worker.engine, |replies, decided| {
                        worker.decided(&key, &decided);
                        style.write(replies, &decided, limit.limit(), &key)
                    })
                });
            }
        }
        self.pending.clear();
        self.limits.clear();
        self.numbers.index = None;
        self.text.index = None;
    }
}

/// Prepares a limit for this engine. Fails if the engine does not support it.
fn accepted(limit: Limit, engine: &Engine) -> Result<PreparedLimit, String> {
    engine.accept(limit).map_err(|why| format!("ERR {why}"))
}

/// Builds the token bucket of `CL.THROTTLE` and `THROTTLE`.
fn throttle_limit([burst, count, period]: ThrottleNumbers) -> Result<Limit, String> {
    let draft = LimitBuilder::new(Algorithm::TokenBucket, count, Duration::from_secs(period)).burst(burst);
    draft.build().map_err(|error| format!("ERR {error}"))
}

/// Parses a limit.
fn limit_of(text: &[u8]) -> Result<Limit, String> {
    let text = std::str::from_utf8(text).map_err(|_| format!("ERR the limit is no text: {}", echo(text)))?;
    parse_limit(text).map_err(|error| format!("ERR {error}"))
}
