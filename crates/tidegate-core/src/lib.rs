#![cfg_attr(docsrs, feature(doc_cfg))]
//! Exact rate limiting: Tidegate decides whether one more action of a key may happen now, later or not at all.
//!
//! A [`Limit`] is the promise. [`Limiter`] applies it to any number of keys, [`DirectLimiter`] to just one.
//! [`admit_all`] asks several limits that are allowed or denied together. A caller that prefers to wait uses
//! [`Limiter::acquire`], [`Pacer`], [`Shaper`] or [`Permits`].
//!
//! ```
//! use tidegate::{Limit, Limiter, SECOND};
//!
//! const API: Limit = Limit::per_second(10).burst(20); // a literal: a bad one does not compile
//! let limiter = Limiter::new(API);
//! if limiter.admit("ana").is_allowed() {
//!     println!("welcome");
//! }
//! limiter.acquire("ana").max_wait(SECOND).blocking()?; // or `.await`, on any runtime
//! # Ok::<(), tidegate::Denied>(())
//! ```
//!
//! All of them call one pure function of a limit, a small state per key, and the time. It reads no clock, takes no
//! lock and cannot fail. It allocates only for logs, window slots and permits in flight.
//!
//! ```
//! use tidegate::{Ask, Clock, Limit, ManualClock, State, SECOND};
//!
//! const API: Limit = Limit::per_second(10).burst(2); // a literal: a bad one does not compile
//! let clock = ManualClock::new();
//! let mut ana = State::default();
//!
//! assert!(API.decide(&mut ana, clock.now(), Ask::ONE).is_allowed());
//! assert!(API.decide(&mut ana, clock.now(), Ask::ONE).is_allowed());
//! let denied = API.decide(&mut ana, clock.now(), Ask::ONE);
//! assert_eq!(denied.retry_after(), Some(SECOND / 10));
//! clock.advance(SECOND / 10);
//! assert!(API.decide(&mut ana, clock.now(), Ask::ONE).is_allowed());
//! ```
//!
//! Programs depend on the crate `tidegate`, which re-exports this one. Its page has tables for the choice of a type and
//! of an algorithm. The grammar of a limit is described in [text of a limit](Limit#text-of-a-limit).
//!
//! # Features
//!
//! - `serde` implements `Serialize` and `Deserialize`: [`Limit`], [`Rate`], [`Algorithm`] and [`PermitId`] are their
//!   texts, [`Verdict`] and [`Decision`] are structures, see [serialized form](Decision#serialized-form).
//! - `tracing` emits events with the target `tidegate`, without keys.
//!
//! | level | message | fields | emitted at |
//! |---|---|---|---|
//! | debug | `denied` | `limiter`, `limit`, `remaining`, `retry_after` | a denial by `admit` |
//! | warn | `remote store failed` | `error` | the first take that the remote store of a [`FallbackStore`] did not decide |
//! | info | `remote store recovered` | none | the first take that it decided again |
//!
//! A denial is emitted by `admit` and `admit_tracked` of [`Limiter`], [`SharedLimiter`] and [`DirectLimiter`], and by
//! `admit` of [`Permits`] and [`Pacer`]. Other calls, such as `acquire` and [`admit_all`], emit none.
//!
//! `limiter` is the name that was given to [`Limiter::on`] or [`SharedLimiter::on`]. It is empty for [`Limiter::new`]
//! and for limiters without keys. `limit` and `remaining` are those of the [`Decision`]. `retry_after` is absent if no
//! wait helps. Keys are never fields, because they may be addresses or names of persons.

mod adaptive;
pub mod algorithm;
mod ask;
#[doc(hidden)]
pub mod attribute;
mod concurrency;
mod conversions;
mod decision;
mod decisions;
mod denial_reason;
mod denied;
mod direct;
mod dynamic;
mod few;
mod history;
mod key;
mod limit;
mod limit_text;
mod limiter;
#[cfg(all(test, tidegate_models))]
mod models;
mod pacer;
mod permits;
mod receipt;
mod seqlock;
#[cfg(feature = "serde")]
mod serialized;
mod shaper;
mod shared_limiter;
mod small_bytes;
mod store;
mod sync;
pub mod time;
mod trace;
mod wait;

pub use adaptive::{
    AdaptiveLimit, BreakerPermit, BreakerState, CircuitBreaker, CircuitBreakerBuilder, Estimator, Outcome,
    Sample,
};
pub use algorithm::{Algorithm, State};
pub use ask::{Adjusted, Adjustment, Ask, Cost, CostError, IntoAsk, KeyedAsk, ask};
pub use concurrency::{
    AcquireConcurrencyPermit, Class, ClassId, ConcurrencyLimiter, ConcurrencyLimiterBuilder,
    ConcurrencyPermit, QueuedConcurrencyPermit,
};
pub use conversions::{AlgorithmError, PermitIdError, TicksError};
pub use decision::{Ban, Decision, PermitId, Verdict};
pub use decisions::{DecidedBy, Decisions};
pub use denial_reason::DenialReason;
pub use denied::{Denied, FromDenied};
pub use direct::{DirectLimiter, DirectLimiterBuilder};
pub use dynamic::{DynamicAsk, DynamicLimiter};
pub use history::{Begun, History, MAX_PREDECESSORS, OwnDecision, Predecessor};
pub use key::{IntoKey, Key, KeyPart};
pub use limit::{Alignment, DelayAfter, Limit, LimitBuilder, LimitError, Pay, Rate, WindowMode, WorstCase};
pub use limiter::{AdmitEach, Limiter, LimiterAsk, LimiterBuilder, admit_all};
pub use pacer::{Pacer, PacerBuilder};
pub use permits::{AcquirePermit, Permit, Permits, PermitsBuilder, QueuedPermit};
pub use receipt::Receipt;
pub use shaper::{Shaper, ShaperBuilder};
pub use shared_limiter::{SharedLimiter, SharedTake};
pub use store::{
    DecisionMeter, DroppedCounts, FallbackStore, Map, MemoryStore, OnStoreFailure, OpenReceipt, PenaltyError,
    PreparedLimit, PreparedPenalty, ReceiptCounts, Scope, StateCounts, Store, StoreError, StoreFailure,
    StoreFailures, StoreFuture, StoreMeter, Subject, WhenFull, WithoutStore, Zone, ZoneCounts, ZoneError,
    Zones,
};
pub use time::{
    CalendarPeriods, CalendarUnit, Clock, CounterClock, DAY, HOUR, MILLISECOND, MINUTE, ManualClock, SECOND,
    SystemClock, Ticks, TimeZone, TimeZoneError, Timestamp, WallAlignment,
};
pub use wait::{Acquire, AcquireTracked, Enqueued, Queued, QueuedTracked, TrackedTake, Waited};

/// The queue of waiters behind every limiter, for the crates beside this one; it may change with any version.
#[doc(hidden)]
pub mod wait_queue {
    pub use crate::wait::{
        Cause, Entry, Joined, KeyQueue, Next, QueuePolicy, QueueState, QueueTicket, QueueTurn, WaitQueue,
        Waiter,
    };
}

/// Functions that only fuzz targets call.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::store::zone::memory::states::state_file;
    pub use crate::store::zone::memory::zone_header;
}
