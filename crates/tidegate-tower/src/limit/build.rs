//! How a layer is made.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tidegate::{Clock, Limit, Limiter, Zone};
use tidegate_rules::Gate;

use super::RateLimit;
use super::each::Each;
use super::fixed::{Fixed, ZONE_BYTES};
use super::rules::Rules;
use super::settings::{Settings, Way};
use super::settle::Settle;
use crate::answer::{Dialect, Refused};
use crate::head::{Head, ResponseHead};
use crate::key::{Extract, Identify};

/// What a limit is called in header fields unless it is named.
const DEFAULT_NAME: &str = "default";

impl RateLimit {
    /// Holds everyone whom the key names to this limit, in memory of its own.
    ///
    /// With [`key::everyone`](crate::key::everyone) all requests together are held to it.
    ///
    /// The memory is a [`Zone`] of 16 MiB, of which the system gives as much as is used: good for half a million keys
    /// that owe something at the same time. When there are more, nobody is admitted too much, and newcomers may be
    /// refused early. For another size make the limiter:
    ///
    /// ```
    /// use tidegate::{Limit, Limiter, Zone};
    /// use tidegate_tower::{RateLimit, key};
    ///
    /// let limiter = Limiter::on(&Zone::new(64 << 20), "api", Limit::per_minute(100)); // two million keys
    /// let layer = RateLimit::with(limiter, key::header("x-api-key"));
    /// # let _ = layer;
    /// ```
    pub fn new(limit: Limit, key: impl Identify) -> RateLimit {
        RateLimit::fixed(Fixed::new(limit, Arc::new(key)))
    }

    /// The same by a limiter that others use, too.
    ///
    /// A text, a number and an address of IPv4 are the same key here and there; an address of IPv6 is the text of its
    /// network, such as `2001:db8:1:2::/64`.
    pub fn with(limiter: Limiter, key: impl Identify) -> RateLimit {
        RateLimit::fixed(Fixed::by(limiter, Arc::new(key)))
    }

    fn fixed(fixed: Fixed) -> RateLimit {
        RateLimit::on(Way::Fixed(fixed.named(DEFAULT_NAME)))
    }

    /// Holds each request to the limit that the function says, in memory of its own: by the caller's plan, by the
    /// route.
    ///
    /// What is owed belongs to the key and the limit. So a caller owes nothing under one limit for what it does under
    /// another, and whoever changes plans starts afresh under the new one.
    ///
    /// The memory is that of [`RateLimit::new`], for all limits together; [`RateLimit::each_on`] has another one.
    /// With [`RateLimit::wait`] there is a line for each key under each limit, for the first 64 different limits that
    /// are asked for. More are held to just as well, but who waits under those may be overtaken.
    pub fn each(key: impl Identify, limit: impl Fn(Head<'_>) -> Limit + Send + Sync + 'static) -> RateLimit {
        RateLimit::each_on(&Zone::new(ZONE_BYTES), key, limit)
    }

    /// The same in a zone that others use, too; there it is what a limiter counts whose name is the limit's text, such
    /// as `10/s burst 20`.
    pub fn each_on(
        zone: &Zone,
        key: impl Identify,
        limit: impl Fn(Head<'_>) -> Limit + Send + Sync + 'static,
    ) -> RateLimit {
        let each = Each::new(zone, Arc::new(key), Arc::new(limit));
        RateLimit::on(Way::Each(each.named(DEFAULT_NAME)))
    }

    /// Holds requests to the rules of a gate, whose store may be elsewhere.
    ///
    /// Rules look at `method`, `path`, `host`, `ip` (see [`RateLimit::peer`]), `header.x`, `cookie.x`, `query.x`, and at
    /// what [`RateLimit::attribute`] adds. Whom a rule always refuses gets 403. What rules give in flight goes back when
    /// the response is over; from a store elsewhere, when the response begins.
    ///
    /// Where no rule says how long a request may wait, it does not; [`RateLimit::wait`] makes the longest wait of a rule
    /// shorter, and not longer. Whoever hangs up while it waits has spent.
    pub fn rules(gate: Gate) -> RateLimit {
        RateLimit::on(Way::Rules(Rules::new(gate)))
    }

    /// Where rules find the address of whoever asks, which is their attribute `ip`; [`key::peer`](crate::key::peer())
    /// unless set.
    ///
    /// If a rule looks at it and no server has noted it, the answer is an error 500 that says so: rules that refuse
    /// addresses would refuse nobody. [`or_skip`](Extract::or_skip) says that it is meant. Text that is no address is
    /// refused with 400.
    ///
    /// Addresses are counted in groups as each rule says (`ipv4_prefix`, `ipv6_prefix`), or in those of the extractor if
    /// they are larger: networks of IPv4, and of IPv6 with less than 64 bits. Smaller groups only a rule can have.
    /// Conditions look at the whole address.
    ///
    /// # Panics
    /// If the layer was not made by [`RateLimit::rules`]: nobody would look at it.
    #[must_use]
    pub fn peer(self, peer: impl Extract) -> RateLimit {
        self.set(|settings| match &mut settings.way {
            Way::Rules(rules) => rules.set_peer(Arc::new(peer)),
            _ => panic!(
                "peer: only rules look for it, and this layer has none; give the peer as the key, or make the layer by \
                 RateLimit::rules"
            ),
        })
    }

    /// One more attribute for rules, such as the user whom a layer outside of this one has found out, or another value
    /// for one that is there by itself: in a nested router of axum the whole path is
    /// `.attribute("path", key::extension(|uri: &OriginalUri| uri.path().to_owned()))`.
    /// `ip` is [`RateLimit::peer`].
    ///
    /// What is missing is for each rule to judge, by its `on_missing`; so is what the extractor
    /// [skips](Extract::or_skip). An address is the text of its group, such as `2001:db8:1:2::/64`.
    ///
    /// # Panics
    /// If the layer was not made by [`RateLimit::rules`]: nobody would look at it.
    #[must_use]
    pub fn attribute(self, name: &str, value: impl Extract) -> RateLimit {
        self.set(|settings| match &mut settings.way {
            Way::Rules(rules) => rules.add(name, Arc::new(value)),
            _ => panic!(
                "attribute {name:?}: only rules look at it, and this layer has none; give it as a part of the key, or \
                 make the layer by RateLimit::rules"
            ),
        })
    }

    pub(super) fn on(way: Way) -> RateLimit {
        RateLimit { settings: Arc::new(Settings::new(way)) }
    }

    /// The name of the limit in header fields and problems; `default` unless set. Rules have names of their own.
    #[must_use]
    pub fn named(self, name: &str) -> RateLimit {
        self.set(|settings| settings.way.set_name(name))
    }

    /// How much each request weighs, 1 unless set. One that weighs 0 asks nothing: it passes, and spends nothing.
    #[must_use]
    pub fn cost(self, cost: impl Fn(Head<'_>) -> u64 + Send + Sync + 'static) -> RateLimit {
        self.set(|settings| settings.cost = Some(Arc::new(cost)))
    }

    /// Lets requests wait that would be refused, at most so long, in the order in which they came.
    ///
    /// A caller's `grpc-timeout` shortens the wait. Whoever would have to wait longer is refused at once; whoever hangs
    /// up while it waits gives its place back.
    #[must_use]
    pub fn wait(self, longest: Duration) -> RateLimit {
        self.set(|settings| settings.longest_wait = longest)
    }

    /// Does not limit `OPTIONS`, by which browsers ask before they ask.
    #[must_use]
    pub fn exempt_options(self) -> RateLimit {
        self.set(|settings| settings.exempts_options = true)
    }

    /// Does not limit requests of which the function says so.
    #[must_use]
    pub fn exempt(self, exempt: impl Fn(Head<'_>) -> bool + Send + Sync + 'static) -> RateLimit {
        self.set(|settings| settings.exempt = Some(Arc::new(exempt)))
    }

    /// The header fields that tell what is left.
    #[must_use]
    pub fn fields(self, dialect: Dialect) -> RateLimit {
        self.set(|settings| settings.dialect = dialect)
    }

    /// Corrects what was spent when the response is there: its head says what the request was worth.
    ///
    /// A refund is by the receipt of the request's own take: at most what of it is still owed comes back, in whatever order
    /// requests are answered. So the requests that are kept obey the limit by themselves, and a client that holds back
    /// requests which will be refunded gains nothing.
    ///
    /// Not called for requests that were not limited or were refused. What holds for requests without a response says
    /// [`RateLimit::abandoned`].
    #[must_use]
    pub fn after(self, after: impl Fn(ResponseHead<'_>) -> Settle + Send + Sync + 'static) -> RateLimit {
        self.set(|settings| settings.settlement.set_after(Arc::new(after)))
    }

    /// By what a request is settled that has no response: its client has hung up, its service has panicked or got an error
    /// in place of a response. It is done when the request is dropped.
    ///
    /// Unless this is said, nobody escapes a charge by hanging up: what was taken stays taken, and beside it the most is
    /// charged that [`RateLimit::after`] would charge. That is what it says about an empty response with status 499
    /// (client closed request), or the most that it has charged so far in this layer, whichever is more; a refund that it
    /// says there is not done. Say `.abandoned(Settle::Keep)` where nothing is to be charged, or
    /// `.abandoned(Settle::Charge(n))` where the most is known.
    ///
    /// A request that is gone before the service was asked for it, because it waited or because rules on a store elsewhere
    /// were still asked, is never charged; a refund that is said here is done.
    ///
    /// ```
    /// use tidegate::Limit;
    /// use tidegate_tower::{RateLimit, Settle, key};
    ///
    /// let layer = RateLimit::new(Limit::per_hour(10_000), key::header("x-user"))
    ///     .after(|response| match response.headers().get("x-tokens").and_then(|field| field.to_str().ok()) {
    ///         Some(tokens) => Settle::Charge(tokens.parse().unwrap_or(4_096)),
    ///         None => Settle::Keep,
    ///     })
    ///     // An answer has 4,096 tokens at most.
    ///     .abandoned(Settle::Charge(4_096));
    /// # let _ = layer;
    /// ```
    #[must_use]
    pub fn abandoned(self, settle: Settle) -> RateLimit {
        self.set(|settings| settings.settlement.set_abandoned(settle))
    }

    /// The answer to whoever is refused, in place of ours; fields that tell what is left are added to it, and
    /// `Retry-After` unless it has one.
    #[must_use]
    pub fn otherwise(
        self,
        answer: impl Fn(&Refused<'_>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> RateLimit {
        self.set(|settings| settings.otherwise = Some(Arc::new(answer)))
    }

    /// Waits by another clock where a decision says for how long; for tests. Limiters and stores have clocks of their
    /// own.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> RateLimit {
        self.set(|settings| settings.clock = clock)
    }

    pub(super) fn set(mut self, change: impl FnOnce(&mut Settings)) -> RateLimit {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}
