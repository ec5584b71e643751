//! The store: translates between the library and the calls to the server.
//!
//! [`RedisStore`] implements [`tidegate_core::Store`]. It holds no logic of an algorithm: `script` builds the calls,
//! `exchange` sends them, and `take`, `adjust` and `reset` combine them to operations.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use redis::Value;
use tidegate_core::{
    Adjusted, Adjustment, Ask, Clock, Cost, Decision, Decisions, Limit, OpenReceipt, PermitId, State, Store,
    StoreError, StoreFuture, Subject, Ticks, Timestamp,
};
use tokio::time::Instant;

use crate::background::{Background, go_on};
use crate::counts::Counts;
use crate::denial_cache::DenialCache;
use crate::dial::Dialer;
use crate::exchange::{Exchange, Question};
use crate::fault::Fault;
use crate::limits::{Listings, ServerTime, Turn, Turns, Upkeep, next_store_number};
use crate::link::{Answered, LinkContext, MemoryId};
use crate::open::{OpenError, check};
use crate::options::Options;
use crate::request_queue::RequestQueue;
use crate::returns::{GiveBack, Returns, Tasks};
use crate::script::{self, AskReply, Bid, Call, TakeAsk, Target, Time, Unsupported};
use crate::status::Status;
use crate::take::MOST_TOGETHER;
use crate::topology::Topology;
use crate::url::Deployment;

/// A store shared by many machines, in Redis or Valkey. Clones share its connections.
///
/// Opening a store starts no thread and no connection. The first request does, or [`RedisStore::connect`]. All its
/// connections live on a separate thread, so it can be used from any runtime.
///
/// A [`SharedLimiter`] limits any number of keys on it. While the server is down, its decisions are errors:
///
/// ```no_run
/// use tidegate::redis::{Options, RedisStore};
/// use tidegate::{Limit, SharedLimiter};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let redis = RedisStore::open(Options::new("redis://127.0.0.1:6379".parse()?))?;
/// let logins = SharedLimiter::on(&redis, "login", Limit::per_minute(5));
/// match logins.admit("ana").await {
///     Ok(decision) => println!("allowed: {}, {} left", decision.is_allowed(), decision.remaining()),
///     Err(error) => println!("no decision: {error}"),
/// }
/// # Ok(())
/// # }
/// ```
///
/// With a [`FallbackStore`] around the store, each node decides by its share of the limit while the server is down, or
/// by another [`OnStoreFailure`]:
///
/// ```no_run
/// use std::num::NonZeroU64;
/// use std::sync::Arc;
///
/// use tidegate::redis::{Options, RedisStore};
/// use tidegate::{FallbackStore, Limit, SharedLimiter, Zone};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let redis = RedisStore::open(Options::new("redis://127.0.0.1:6379".parse()?))?;
/// let four = NonZeroU64::new(4).expect("not zero");
/// let store = FallbackStore::new(Arc::new(redis), &Zone::new(1 << 20)).nodes(four);
/// let users = SharedLimiter::on(&store, "user", Limit::per_minute(100));
/// assert!(users.admit("ana").await?.is_allowed());
/// # Ok(())
/// # }
/// ```
///
/// A gate of `tidegate::rules` takes the [`FallbackStore`]; each of its rules has an `on_store_failure` of its own.
///
/// # Errors of decisions
///
/// Every operation fails within [`Options::deadline`]. An error says whether units may have been spent:
/// [`StoreError::is_retryable`] is true if the failed call was certainly not executed. The store itself never repeats a
/// call that was sent and not answered.
///
/// # Cached denials
///
/// A key that is certain to be denied until a known time is denied from memory, without a request to the server, unless
/// [`Options::caches_denials`] is false. A denial is cached for at most ten seconds, and for at most one second on a
/// cluster. Denials of concurrency limits, and of limits that count denials, are never cached. A request under several
/// limits is denied from memory only if each of them has a cached denial.
///
/// While the server is down, cached denials stay in force: a key that was denied a moment ago still gets that denial,
/// with the remaining wait, and every other key gets the error or the decision of the fallback. Under a
/// [`FallbackStore`] such a denial is reported as one of the remote store, even if the policy is
/// [`OnStoreFailure::Open`]. A new connection and a flush that the server reports end all cached denials; a reset or a
/// refund through this store ends those of its key.
///
/// [`FallbackStore`]: tidegate_core::FallbackStore
/// [`OnStoreFailure`]: tidegate_core::OnStoreFailure
/// [`OnStoreFailure::Open`]: tidegate_core::OnStoreFailure::Open
/// [`SharedLimiter`]: tidegate_core::SharedLimiter
#[doc(alias = "redis")]
#[doc(alias = "valkey")]
#[doc(alias = "distributed rate limiter")]
#[doc(alias = "shared store")]
#[doc(alias = "backend")]
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) inner: Arc<Inner>,
}

/// The state of a store, shared by its clones.
pub(crate) struct Inner {
    /// The validated options.
    pub(crate) options: Options,
    /// The counters that [`RedisStore::status`] reports.
    pub(crate) counts: Arc<Counts>,
    /// The cache of denials; `None` if it is switched off.
    pub(crate) refusals: Option<DenialCache>,
    /// The unique number by which prepared limits identify this store.
    pub(crate) number: u64,
    /// The limits that are listed in their tables.
    pub(crate) listings: Arc<Listings>,
    /// The server's clock, for decisions about when tables have to be written.
    pub(crate) server_time: Arc<ServerTime>,
    /// The order of takes that need more than one call.
    pub(crate) turns: Arc<Turns>,
    /// The tasks of abandoned requests that still run.
    pub(crate) tasks: Tasks,
    /// The permits that are released in the background.
    pub(crate) returns: Arc<Returns>,
    /// A clock that replaces that of the server.
    pub(crate) clock: Option<Arc<dyn Clock>>,
    /// The connections, once a request has started them; or the reason why no thread could be started.
    running: OnceLock<Result<Running, String>>,
}

/// The connection thread of a store, and its handles for callers.
pub(crate) struct Running {
    /// The sender of calls, for tasks that run on the connection thread.
    pub(crate) exchange: Arc<Exchange>,
    /// The thread itself. It ends when the last clone of the store is dropped.
    pub(crate) background: Background,
    /// The queue through which callers on other threads send requests.
    requests: RequestQueue,
}

impl RedisStore {
    /// Opens a store on the server of these options. Returns an error if the options are invalid; the server is not
    /// contacted.
    ///
    /// A store can be opened before the server runs. Requests fail with a retryable error until it is reached: within
    /// the deadline during the first attempt to connect, immediately after it. The store keeps trying in the
    /// background.
    ///
    /// # Errors
    ///
    /// Returns an error if the prefix, the deadline, the number in flight or a certificate is invalid. The message
    /// contains the value and the remedy.
    #[doc(alias = "connect")]
    #[doc(alias = "client")]
    pub fn open(options: Options) -> Result<RedisStore, OpenError> {
        RedisStore::with_clock(options, None)
    }

    /// Opens a store with another clock, in whole microseconds, for tests that control the time.
    #[doc(hidden)]
    pub fn with_given_time(options: Options, clock: Arc<dyn Clock>) -> Result<RedisStore, OpenError> {
        RedisStore::with_clock(options.caches_denials(false), Some(clock))
    }

    /// Opens a store; `clock` replaces the time of the server in every script.
    fn with_clock(options: Options, clock: Option<Arc<dyn Clock>>) -> Result<RedisStore, OpenError> {
        check(&options)?;
        let new = match options.url.place {
            Deployment::Cluster(_) => DenialCache::across_slots,
            _ => DenialCache::new,
        };
        let refusals = options.caches_denials.then(new);
        let inner = Inner {
            options,
            counts: Arc::default(),
            refusals,
            number: next_store_number(),
            listings: Arc::default(),
            server_time: Arc::new(ServerTime::new()),
            turns: Arc::default(),
            tasks: Tasks::default(),
            returns: Arc::default(),
            clock,
            running: OnceLock::new(),
        };
        Ok(RedisStore { inner: Arc::new(inner) })
    }

    /// Starts to connect in the background, and retries until the server is reached. Requests do this implicitly.
    pub fn connect(&self) {
        // If no thread can be started, requests report the reason.
        let _ = self.inner.running();
    }

    /// Waits until the first attempt to connect has ended, then returns the present state of the connection: an error
    /// if the server is not reached.
    ///
    /// An application calls it at startup to report an unreachable server at once. It is not required: decisions work
    /// as soon as the server is reached. After the first attempt it does not wait, so an application that wants to wait
    /// for the server repeats it:
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # async fn example(store: tidegate::redis::RedisStore) {
    /// while let Err(error) = store.ready().await {
    ///     eprintln!("{error}: {}", store.status().what); // the server, the fault and the remedy
    ///     tokio::time::sleep(Duration::from_millis(500)).await;
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the last attempt to connect failed, if the connection was lost, or if the server cannot
    /// decide, for example while it loads its data. Its source names the server, the fault and the remedy. Attempts
    /// continue in the background.
    #[doc(alias = "health check")]
    #[doc(alias = "ping")]
    pub async fn ready(&self) -> Result<(), StoreError> {
        let running = self.inner.running()?;
        let exchange = running.exchange.clone();
        let settled = running.background.handle().spawn(async move {
            exchange.topology.settled().await;
            exchange.topology.health()
        });
        match settled.await {
            Ok(health) if health.is_up => Ok(()),
            Ok(health) => Err(Fault::Down(health.what).into()),
            Err(_) => Err(closed().into()),
        }
    }

    /// Returns the availability of the server, and the counters since the store was opened.
    ///
    /// The call reads atomics and locks briefly. It contacts no server, so it is cheap enough for each scrape of
    /// metrics.
    #[doc(alias = "metrics")]
    #[doc(alias = "health check")]
    pub fn status(&self) -> Status {
        Status::of(&self.inner)
    }

    /// Returns the state of a key, as far as a decision needs it, for tests that compare states.
    #[doc(hidden)]
    pub async fn state(&self, subject: Subject<'_>) -> Result<State, StoreError> {
        let bids = [Bid::new(self.inner.target(&subject)?, Ask::ONE)];
        let answer = self.inner.run(script::peek(&bids, self.inner.time()), self.inner.due()?).await?;
        let (_, states) = read(script::read_peek(answer, &bids))?;
        Ok(states.into_iter().next().unwrap_or_default())
    }

    /// Returns the complete states of a key under several limits of one algorithm, for tests that compare states.
    #[doc(hidden)]
    pub async fn states(&self, subjects: &[Subject<'_>]) -> Result<Vec<State>, StoreError> {
        let mut names = Vec::new();
        for subject in subjects {
            names.push(self.inner.target(subject)?.name);
        }
        let algorithms: Vec<_> = subjects.iter().map(|subject| subject.limit().algorithm()).collect();
        let call = script::states(names, &algorithms, self.inner.time());
        let answer = self.inner.run(call, self.inner.due()?).await?;
        read(script::read_states(&answer, &algorithms))
    }

    /// Returns the URL of the server.
    ///
    /// Its `Display` output contains no password.
    pub fn url(&self) -> &crate::Url {
        &self.inner.options.url
    }
}

impl Inner {
    /// Returns the connections if a request has started them.
    pub(crate) fn started(&self) -> Option<&Running> {
        self.running.get()?.as_ref().ok()
    }

    /// Returns the connections, and starts them if there are none. A system that starts no more threads is reported by
    /// every request.
    pub(crate) fn running(&self) -> Result<&Running, Fault> {
        let running = self.running.get_or_init(|| self.start().map_err(|error| error.to_string()));
        running.as_ref().map_err(|error| {
            Fault::Down(format!("the system gives no thread for connections: {error}; allow more threads"))
        })
    }

    /// Starts the connection thread, and on it the topology, the request queue, the upkeep of tables and the release of
    /// permits.
    fn start(&self) -> std::io::Result<Running> {
        let background = Background::start()?;
        let trunk = Arc::new(LinkContext {
            dialer: Dialer::new(&self.options),
            counts: self.counts.clone(),
            handle: background.handle().clone(),
            deadline: self.options.deadline,
            doubts: tokio::sync::Notify::new(),
        });
        let topology = Topology::new(&self.options, &trunk);
        let Options { deadline, max_in_flight, .. } = self.options;
        let exchange = Arc::new(Exchange::new(topology, self.counts.clone(), deadline, max_in_flight));
        let requests = RequestQueue::open(&exchange, background.handle(), &self.turns.is_ready);
        let (listings, server_time) = (self.listings.clone(), self.server_time.clone());
        let upkeep = Arc::new(Upkeep { listings, server_time, exchange: exchange.clone() });
        go_on(background.handle(), move || upkeep.clone().run());
        let (returns, counts, clock) = (self.returns.clone(), self.counts.clone(), self.clock.clone());
        let give_back = Arc::new(GiveBack { returns, exchange: exchange.clone(), counts, clock });
        go_on(background.handle(), move || give_back.clone().run());
        Ok(Running { exchange, background, requests })
    }

    /// Returns the prefix of all key names.
    pub(crate) fn prefix(&self) -> &[u8] {
        self.options.prefix.as_bytes()
    }

    /// Returns the clock for the next call: the server's, or the given one.
    pub(crate) fn time(&self) -> Time {
        time_by(self.clock.as_ref())
    }

    /// Returns the server's time, extrapolated from its last reply.
    pub(crate) fn reckoned_now(&self) -> Timestamp {
        self.clock.as_ref().map_or_else(|| self.server_time.now(), |clock| clock.now())
    }

    /// Sends a request to the server on the connection thread.
    pub(crate) async fn ask(&self, question: Question, due: Instant) -> Result<Answered, Fault> {
        self.running()?.requests.ask(question, due).await.unwrap_or_else(|| Err(closed()))
    }

    /// Sends one take, in one call with others that are queued at the same time. With a turn it is sent behind the takes
    /// before it.
    pub(crate) async fn run_take(
        &self,
        ask: TakeAsk,
        turn: Option<&Turn>,
        due: Instant,
    ) -> Result<AskReply, StoreError> {
        let place = turn.map(|turn| turn.place().clone());
        let reply = self.running()?.requests.take(ask, place, self.time(), due).await;
        Ok(reply.unwrap_or_else(|| Err(closed()))?)
    }

    /// Returns the deadline of a decision that begins now.
    pub(crate) fn due(&self) -> Result<Instant, Fault> {
        Ok(self.running()?.exchange.due())
    }

    /// Runs a script and returns its reply. The call is queued behind all takes that were queued before.
    pub(crate) async fn run(&self, call: Call, due: Instant) -> Result<Value, StoreError> {
        Ok(self.ask(Question::Run(Arc::new(call)), due).await?.value)
    }

    /// Returns true if keys of different slots may be on different servers.
    pub(crate) fn has_slots(&self) -> bool {
        matches!(self.options.url.place, Deployment::Cluster(_))
    }

    /// Returns the identity of the memory of a slot, if its server is connected.
    pub(crate) fn seat_in(&self, slot: u16) -> Option<MemoryId> {
        self.started()?.exchange.topology.seat(slot)
    }

    /// Returns the state of a key under its limit.
    pub(crate) fn target(&self, subject: &Subject<'_>) -> Result<Target, StoreError> {
        let limit = self.stored(subject).map_err(|error| unfit(&error))?;
        Ok(limit.target(self.prefix(), subject.key()))
    }

    /// Removes cached denials of this state.
    pub(crate) fn forget(&self, name: &[u8]) {
        if let Some(refusals) = &self.refusals {
            refusals.forget(name);
        }
    }
}

/// Returns the time of the given clock, or that of the server.
pub(crate) fn time_by(clock: Option<&Arc<dyn Clock>>) -> Time {
    clock.map_or(Time::Server, |clock| Time::Given(clock.now()))
}

/// Returns the fault for a store that was dropped meanwhile. The request may have been executed.
pub(crate) fn closed() -> Fault {
    Fault::Lost("the store was closed".to_owned())
}

/// Returns the error for a limit that no script supports.
pub(crate) fn unfit(unsupported: &Unsupported) -> StoreError {
    StoreError::unfit(unsupported.to_string())
}

/// Converts a parse error to a store error. Units may have been spent, so the error is not retryable.
pub(crate) fn read<T, E: fmt::Display>(read: Result<T, E>) -> Result<T, StoreError> {
    Ok(read.map_err(|error| Fault::Unreadable(error.to_string()))?)
}

impl Store for RedisStore {
    /// The future sends nothing before it is polled. If it is dropped after that, permits of the take are released in
    /// the background; other units stay spent.
    fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> StoreFuture<'a, Decisions> {
        self.inner.take(asks)
    }

    /// Reads the state without a change, so a denial is not counted and no lease begins.
    fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> StoreFuture<'a, Decision> {
        StoreFuture::later(self.inner.peek(subject, ask))
    }

    fn adjust<'a>(&'a self, subject: Subject<'a>, adjustment: Adjustment) -> StoreFuture<'a, Adjusted> {
        StoreFuture::later(self.inner.adjust(subject, adjustment))
    }

    fn refund<'a>(
        &'a self,
        subject: Subject<'a>,
        receipt: &'a mut OpenReceipt,
        cost: Cost,
    ) -> StoreFuture<'a, Adjusted> {
        StoreFuture::later(self.inner.refund(subject, receipt, cost))
    }

    fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        StoreFuture::later(async move {
            let call = script::release(&self.inner.target(&subject)?, permit, self.inner.time());
            read(script::read_whether(self.inner.run(call, self.inner.due()?).await?))
        })
    }

    fn release_later(&self, subject: Subject<'_>, permit: PermitId) {
        if let Ok(target) = self.inner.target(&subject) {
            self.inner.give_back_later(target, permit);
        }
    }

    fn in_background(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.inner.go_on_with(task);
    }

    /// The limit is listed first, because a renewed lease can outlast the entry in the table.
    fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
        StoreFuture::later(async move {
            let limit = self.inner.stored(&subject).map_err(|error| unfit(&error))?;
            let due = self.inner.due()?;
            self.inner.make_ready(&limit, Ticks::ZERO, due).await?;
            let target = limit.target(self.inner.prefix(), subject.key());
            let call = script::renew(&target, permit, self.inner.time());
            read(script::read_whether(self.inner.run(call, due).await?))
        })
    }

    fn reset<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
        StoreFuture::later(self.inner.reset(subject))
    }

    fn reset_limit<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
        StoreFuture::later(self.inner.reset_limit(subject))
    }

    /// Rates above one per microsecond and counts above 2^52 are unsupported: numbers in a script are doubles.
    fn supports(&self, limit: &Limit) -> Result<(), String> {
        script::supports(limit).map_err(|unsupported| unsupported.reason())
    }

    fn most_together(&self) -> usize {
        MOST_TOGETHER
    }

    fn forget_refusals(&self) {
        if let Some(refusals) = &self.inner.refusals {
            refusals.forget_all();
        }
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RedisStore({})", self.inner.options.url)
    }
}
