//! The layer and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tidegate_core::{Clock, Limit, LimitError, Limiter, Zone};
use tidegate_rules::Gate;
use tower_layer::Layer;

use super::by_key::{ByKey, Limiters, ZONE_BYTES};
use super::by_rules::ByRules;
use super::decider::Decider;
use super::named_limiter::LimiterStates;
use super::per_request::PerRequest;
use super::service::RateLimit;
use super::settings::Settings;
use super::settle::Settle;
use crate::answer::{DeniedRequest, Dialect};
use crate::event::{DecisionEvent, DecisionHook};
use crate::head::{Head, ResponseHead};
use crate::key::{Extract, Identify};

/// The name of a limit in header fields unless one is set.
const DEFAULT_NAME: &str = "default";

/// A layer that limits the rate of requests; clones share the counts.
///
/// A denied request gets 429 with `Retry-After` and `application/problem+json`, or `RESOURCE_EXHAUSTED` if it is a gRPC
/// call; the service is not called. All replies have header fields with the remaining quota, see [`Dialect`].
///
/// The layer is ready when the service is. A waiting request holds no readiness: it waits with a clone of the service,
/// which is polled for readiness when the wait is over. A denied request releases its readiness.
///
/// Under a limit such as `8/30s concurrency` a request holds its permit until its response is over. The limit's lease,
/// here 30 seconds, has to be longer than the longest response, because the permit expires with it. A connection that
/// is upgraded (101) releases its permit when the head of the response is sent.
///
/// In a nested router of axum the path lacks the prefix of the outer router: put the layer outside, or read axum's
/// `OriginalUri`.
#[doc(alias = "rate limit middleware")]
#[doc(alias = "rate limiter")]
#[doc(alias = "throttle")]
#[doc(alias = "GovernorLayer")]
#[doc(alias = "429")]
#[doc(alias = "too many requests")]
#[doc(alias = "quota")]
#[derive(Clone)]
pub struct RateLimitLayer {
    decider: Decider,
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        RateLimit::new(inner, self.decider.clone())
    }
}

impl fmt::Debug for RateLimitLayer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.decider.fmt(out)
    }
}

impl RateLimitLayer {
    /// Returns a layer that limits each key, in memory of its own.
    ///
    /// With [`key::everyone`](crate::key::everyone) it limits all requests together.
    ///
    /// The memory is a [`Zone`] of 16 MiB, which the system commits as it is used: enough for half a million keys with
    /// a debt at the same time. With more keys, no key is admitted too often, and new keys may be denied early. For
    /// another size make the limiter:
    ///
    /// ```
    /// use tidegate::{Limit, Limiter, Zone};
    /// use tidegate::tower::{RateLimitLayer, key};
    ///
    /// let limiter = Limiter::on(&Zone::new(64 << 20), "api", Limit::per_minute(100)); // two million keys
    /// let layer = RateLimitLayer::with(limiter, key::header("x-api-key"));
    /// # let _ = layer;
    /// ```
    pub fn new(limit: Limit, key: impl Identify) -> RateLimitLayer {
        let limiters = Limiters::own(limit, &key, DEFAULT_NAME);
        RateLimitLayer::by_key(key, limiters)
    }

    /// Returns the same layer for a limit that may be invalid: a text, such as one from a configuration file, or a
    /// [`LimitBuilder`](tidegate_core::LimitBuilder).
    ///
    /// ```
    /// use tidegate::tower::{RateLimitLayer, key};
    ///
    /// let layer = RateLimitLayer::try_new("10/s burst 20", key::header("x-api-key"))?;
    /// # let _ = layer;
    ///
    /// let error = RateLimitLayer::try_new("60/min", key::everyone()).unwrap_err();
    /// assert!(error.to_string().contains("unknown unit \"min\""), "{error}");
    /// # Ok::<(), tidegate::LimitError>(())
    /// ```
    ///
    /// # Errors
    /// If the limit is invalid. The error contains the place, the fault and the remedy.
    pub fn try_new(
        limit: impl TryInto<Limit, Error: Into<LimitError>>,
        key: impl Identify,
    ) -> Result<RateLimitLayer, LimitError> {
        Ok(RateLimitLayer::new(limit.try_into().map_err(Into::into)?, key))
    }

    /// Returns a layer with a limiter that other code may share.
    ///
    /// A text, a number and an IPv4 address are the same key in both. An IPv6 address is the text of its network, such
    /// as `2001:db8:1:2::/64`.
    pub fn with(limiter: Limiter, key: impl Identify) -> RateLimitLayer {
        RateLimitLayer::by_key(key, Limiters::of(LimiterStates::PerKey(limiter), DEFAULT_NAME))
    }

    fn by_key(key: impl Identify, limiters: Limiters) -> RateLimitLayer {
        RateLimitLayer { decider: Decider::ByKey(Arc::new(ByKey::new(key, limiters))) }
    }

    /// Returns a layer in which a function returns the limit of each request, such as by the caller's plan or by the
    /// route. It has memory of its own.
    ///
    /// The function receives the [`Head`] of the request: method, URI, header fields, and the extensions that outer
    /// layers have added.
    ///
    /// ```
    /// use tidegate::Limit;
    /// use tidegate::tower::{RateLimitLayer, key};
    ///
    /// let layer = RateLimitLayer::each(key::header("x-api-key"), |head| match head.path() {
    ///     "/search" => Limit::per_minute(20),
    ///     _ => Limit::per_second(10),
    /// });
    /// # let _ = layer;
    /// ```
    ///
    /// A debt belongs to the key and the limit. So a debt under one limit does not affect requests under another, and a
    /// caller starts full under a new plan.
    ///
    /// The memory is that of [`RateLimitLayer::new`], for all limits together; [`RateLimitLayer::each_on`] has another
    /// one. With [`RateLimitLayer::wait`] there is a queue for each key under each of the first 64 limits. Requests
    /// under further limits are limited as well, but a waiting one may be overtaken.
    pub fn each(
        key: impl Identify,
        limit: impl Fn(Head<'_>) -> Limit + Send + Sync + 'static,
    ) -> RateLimitLayer {
        RateLimitLayer::each_on(&Zone::new(ZONE_BYTES), key, limit)
    }

    /// Returns the same layer in a zone that other code may share. It shares states with limiters whose name is the
    /// text of the limit, such as `10/s burst 20`.
    pub fn each_on(
        zone: &Zone,
        key: impl Identify,
        limit: impl Fn(Head<'_>) -> Limit + Send + Sync + 'static,
    ) -> RateLimitLayer {
        let limiters = PerRequest::new(zone, DEFAULT_NAME, Arc::new(limit));
        RateLimitLayer::by_key(key, Limiters::PerRequest(limiters))
    }

    /// Returns a layer that limits requests by the rules of a gate, whose store may be remote. The gate is that of
    /// `tidegate::rules`, by the feature `rules`.
    ///
    /// Rules match `method`, `path`, `host`, `ip` (see [`RateLimitLayer::peer`]), `header.x`, `cookie.x`, `query.x`,
    /// and the attributes of [`RateLimitLayer::attribute`]. A request that a rule always denies gets 403. Permits are
    /// released when the response is over; in a remote store, when the response begins.
    ///
    /// A request waits only if a rule has a max wait; [`RateLimitLayer::wait`] can shorten the max wait of a rule, not
    /// extend it. If a client disconnects while its request waits, the cost stays spent.
    pub fn rules(gate: Gate) -> RateLimitLayer {
        RateLimitLayer { decider: Decider::ByRules(Arc::new(ByRules::new(gate))) }
    }

    /// Sets the extractor of the client address, which is the attribute `ip` of rules;
    /// [`key::peer`](crate::key::peer()) unless set.
    ///
    /// If a rule matches it and no server has added it, the reply is an error 500 with that reason: otherwise rules
    /// that deny addresses would deny none. [`or_skip`](Extract::or_skip) accepts a missing address. Text that is not
    /// an address is denied with 400.
    ///
    /// Each rule sets the networks by which addresses are counted (`ipv4_prefix`, `ipv6_prefix`). The extractor's
    /// grouping applies if its networks are larger: any network of IPv4, and networks of IPv6 with less than 64 bits.
    /// Only a rule can set smaller ones. Conditions match the whole address.
    ///
    /// # Panics
    /// If the layer was not made by [`RateLimitLayer::rules`]: it would have no effect.
    #[must_use]
    pub fn peer(mut self, peer: impl Extract) -> RateLimitLayer {
        match &mut self.decider {
            Decider::ByRules(by) => Arc::make_mut(by).set_peer(Arc::new(peer)),
            Decider::ByKey(_) => panic!(
                "peer: only rules look for it, and this layer has none; give the peer as the key, or make the layer by \
                 RateLimitLayer::rules"
            ),
        }
        self
    }

    /// Adds an attribute for rules, such as the user that an outer layer has authenticated, or replaces a built-in one.
    /// In a nested router of axum the whole path is
    /// `.attribute("path", key::extension(|uri: &OriginalUri| uri.path().to_owned()))`.
    /// For `ip` use [`RateLimitLayer::peer`].
    ///
    /// If it is missing or the extractor [skips](Extract::or_skip) it, `on_missing` of each rule applies. An address is
    /// the text of its network, such as `2001:db8:1:2::/64`.
    ///
    /// # Panics
    /// If the layer was not made by [`RateLimitLayer::rules`]: it would have no effect.
    #[must_use]
    pub fn attribute(mut self, name: &str, value: impl Extract) -> RateLimitLayer {
        match &mut self.decider {
            Decider::ByRules(by) => Arc::make_mut(by).add(name, Arc::new(value)),
            Decider::ByKey(_) => panic!(
                "attribute {name:?}: only rules look at it, and this layer has none; give it as a part of the key, or \
                 make the layer by RateLimitLayer::rules"
            ),
        }
        self
    }

    /// Sets the name of the limit in header fields and problems; `default` unless set. Rules have names of their own.
    #[must_use]
    pub fn named(mut self, name: &str) -> RateLimitLayer {
        if let Decider::ByKey(by) = &mut self.decider {
            Arc::make_mut(by).set_name(name);
        }
        self
    }

    /// Sets the cost of each request, 1 unless set. A request of cost 0 is not limited: it passes and spends nothing.
    #[must_use]
    pub fn cost(self, cost: impl Fn(Head<'_>) -> u64 + Send + Sync + 'static) -> RateLimitLayer {
        self.set(|settings| settings.cost = Some(Arc::new(cost)))
    }

    /// Queues requests that would be denied, for at most this time, in FIFO order.
    ///
    /// A caller's `grpc-timeout` shortens the wait. A request that would have to wait longer is denied at once. A
    /// request whose client disconnects leaves the queue.
    #[must_use]
    #[doc(alias = "queue")]
    #[doc(alias = "backpressure")]
    #[doc(alias = "max_wait")]
    pub fn wait(self, longest: Duration) -> RateLimitLayer {
        self.set(|settings| settings.max_wait = longest)
    }

    /// Does not limit `OPTIONS`, which browsers send before other requests.
    #[must_use]
    pub fn exempt_options(self) -> RateLimitLayer {
        self.set(|settings| settings.exempts_options = true)
    }

    /// Does not limit requests for which the function returns true.
    #[must_use]
    pub fn exempt(self, exempt: impl Fn(Head<'_>) -> bool + Send + Sync + 'static) -> RateLimitLayer {
        self.set(|settings| settings.exempt = Some(Arc::new(exempt)))
    }

    /// Sets the header fields with the remaining quota.
    #[must_use]
    pub fn fields(self, dialect: Dialect) -> RateLimitLayer {
        self.set(|settings| settings.dialect = dialect)
    }

    /// Corrects the cost of a request when its response is there, by the head of the response.
    ///
    /// A refund uses the receipt of the request's own take: it returns at most the part of the take that is still debt,
    /// in whatever order requests complete. So the requests that are kept obey the limit by themselves, and a client
    /// gains nothing by delaying requests that will be refunded.
    ///
    /// It is not called for requests that were denied or not limited. For requests without a response see
    /// [`RateLimitLayer::abandoned`].
    #[must_use]
    #[doc(alias = "refund")]
    #[doc(alias = "charge")]
    pub fn after(self, after: impl Fn(ResponseHead<'_>) -> Settle + Send + Sync + 'static) -> RateLimitLayer {
        self.set(|settings| settings.settlement.set_after(Arc::new(after)))
    }

    /// Sets the correction of requests without a response: the client has disconnected, or the service has panicked or
    /// returned an error in place of a response. It is done when the request is dropped.
    ///
    /// Unless set, a client cannot avoid a charge by disconnecting: the take is kept, and the maximum that
    /// [`RateLimitLayer::after`] would charge is charged as well. That is its charge for an empty response with status
    /// 499 (client closed request), or the largest charge of this layer so far, whichever is more. A refund that it
    /// returns there is ignored. Set `.abandoned(Settle::Keep)` to charge nothing, or `.abandoned(Settle::Charge(n))`
    /// if the maximum is known.
    ///
    /// A request that is dropped before the service was called is never charged: it was waiting, or a remote store had
    /// not replied yet. A refund that is set here is done.
    ///
    /// ```
    /// use tidegate::Limit;
    /// use tidegate::tower::{RateLimitLayer, Settle, key};
    ///
    /// let layer = RateLimitLayer::new(Limit::per_hour(10_000), key::header("x-user"))
    ///     .after(|response| match response.headers().get("x-tokens").and_then(|field| field.to_str().ok()) {
    ///         Some(tokens) => Settle::Charge(tokens.parse().unwrap_or(4_096)),
    ///         None => Settle::Keep,
    ///     })
    ///     // An answer has 4,096 tokens at most.
    ///     .abandoned(Settle::Charge(4_096));
    /// # let _ = layer;
    /// ```
    #[must_use]
    pub fn abandoned(self, settle: Settle) -> RateLimitLayer {
        self.set(|settings| settings.settlement.set_abandoned(settle))
    }

    /// Sets the reply to denied requests, in place of the default one. Header fields with the remaining quota are added
    /// to it, and `Retry-After` unless it has one.
    #[must_use]
    pub fn otherwise(
        self,
        answer: impl Fn(&DeniedRequest<'_>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> RateLimitLayer {
        self.set(|settings| settings.otherwise = Some(Arc::new(answer)))
    }

    /// Sets a function that receives each decision of this layer, for metrics and logs.
    ///
    /// It is called once for each request that is allowed or denied, before the service is called or the response is
    /// sent. It is not called for requests that are not limited ([`exempt`](RateLimitLayer::exempt), a cost of 0, a
    /// part that is [skipped](Extract::or_skip)), and not for requests that are dropped while they wait.
    ///
    /// It runs inside of the call, so it must not block. Unless it is set, no event is made.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// use tidegate::Limit;
    /// use tidegate::tower::{RateLimitLayer, key};
    ///
    /// let denials = Arc::new(AtomicU64::new(0));
    /// let layer = RateLimitLayer::new(Limit::per_minute(100), key::header("x-api-key")).named("api").on_decision({
    ///     let denials = Arc::clone(&denials);
    ///     move |event| {
    ///         if event.is_denied() {
    ///             denials.fetch_add(1, Ordering::Relaxed);
    ///         }
    ///     }
    /// });
    /// # let _ = layer;
    /// ```
    #[must_use]
    #[doc(alias = "metrics")]
    #[doc(alias = "observer")]
    pub fn on_decision(
        self,
        observer: impl Fn(&DecisionEvent<'_>) + Send + Sync + 'static,
    ) -> RateLimitLayer {
        self.set(|settings| settings.hook = DecisionHook::new(observer))
    }

    /// Sets the clock by which requests are delayed under rules; for tests. Limiters and stores have clocks of their
    /// own.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> RateLimitLayer {
        self.set(|settings| settings.clock = clock)
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> RateLimitLayer {
        self.decider.change_settings(change);
        self
    }
}
