//! Builders of a policy in code, with the fields, the checks and the messages of a policy file.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tidegate_core::{Limit, OnStoreFailure, WhenFull};
use tidegate_support::{Complaint, Complaints};

use super::PolicyError;
use super::valid::choice::{DECISIONS, FAILURES, MISSING, MODES, REPEATED, WHEN_FULL, word_for};
use super::valid::{MAX_RULES, Valid, too_many_rules};
use super::written::{
    ConditionText, MAX_LIST, PatternText, PenaltyText, PolicyText, RuleText, WindowText, Written, ZoneText,
    empty_list, too_long_list,
};
use crate::key::{OnMissing, OnRepeated};
use crate::policy::Policy;
use crate::rule::{Mode, Rule, StaticVerdict};

/// A policy under construction in code; see [`Policy::builder`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it is built"]
pub struct PolicyBuilder {
    rules: Vec<RuleBuilder>,
    zones: BTreeMap<String, usize>,
    unmatched: Option<StaticVerdict>,
    attributes: Option<Vec<String>>,
}

/// A rule under construction in code; see [`Rule::builder`].
///
/// Each method sets the field of the same name in a policy file, with the same syntax: [`Policy`] has the [table of all
/// fields](Policy#fields-of-a-rule), and [`Condition`](crate::Condition) those of attributes and patterns. Only
/// [`RuleBuilder::when_any`], [`RuleBuilder::when_missing`], the like for `unless`, and [`RuleBuilder::window`] have no
/// field of their own: they add to `when`, `unless` and `schedule`.
///
/// A second call replaces the value of the first, except for conditions and schedule windows, which are added. Invalid
/// values are reported by [`PolicyBuilder::build`], all at once.
///
/// ```
/// use tidegate::rules::{Attributes, Gate, Policy, Rule, StaticVerdict};
/// use tidegate::{Limit, MINUTE, Zone};
///
/// let scrapers = Rule::builder("scrapers")
///     .when_any("ip", ["198.51.100.0/24", "203.0.113.9", "2001:db8:bad::/48"])
///     .decision(StaticVerdict::Deny);
/// let login = Rule::builder("login")
///     .when_any("path", ["/login", "/password/{*rest}"])
///     .when("method", "POST")
///     .key(["ip"])
///     .limit(Limit::sliding_log(1, MINUTE));
/// let gate = Gate::new(Policy::builder().rule(scrapers).rule(login).build()?, Zone::new(1 << 20))?;
///
/// let request = |ip| Attributes::new().set("ip", ip).path("/login").set("method", "POST");
/// assert!(gate.admit(&request("192.0.2.7")).now()?.is_allowed());
/// let answer = gate.admit(&request("192.0.2.7")).now()?;
/// assert!(!answer.is_allowed() && answer.rule() == Some("login"));
/// let answer = gate.admit(&request("198.51.100.7")).now()?;
/// assert!(answer.is_forbidden() && answer.rule() == Some("scrapers"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a rule has an effect only in a policy"]
pub struct RuleBuilder {
    text: RuleText,
    /// The errors of values that have no text form.
    errors: Vec<String>,
}

/// A time window in which a rule has other parameters; see [`RuleBuilder::window`].
///
/// | field of an entry of `schedule` | value |
/// |---|---|
/// | `from`, `to` | both of every day (`"22:00"`), of every year (`"11-11T00:00"`) or once (`"2026-11-11T00:00"`) |
/// | `days` | days on which a daily window begins, such as `["sat", "sun"]`; every day unless set |
/// | `timezone` | an IANA name, such as `"Europe/Berlin"`; UTC unless set |
/// | `limit`, `cost`, `max_wait`, `mode` | the parameters in the window, one of them at least |
///
/// A window covers the times from `from` up to `to`, by the clocks of its time zone. `"24:00"` is the end of a day. A
/// window of `"22:00"` to `"06:00"` crosses midnight. Parameters that are not set are those of the rule outside its
/// schedule. If windows overlap, the first one is in force.
///
/// ```
/// use tidegate::rules::{Policy, Rule, ScheduleWindow};
///
/// let sale = ScheduleWindow::new("11-11T00:00", "11-12T00:00").timezone("Asia/Shanghai").limit("50/s");
/// let rule = Rule::builder("orders").key(["user"]).limit("5/s").window(sale);
/// let policy = Policy::builder().rule(rule).build()?;
/// assert_eq!(policy.rules()[0].schedule().count(), 1);
/// # Ok::<(), tidegate::rules::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a window has an effect only in a rule"]
pub struct ScheduleWindow {
    text: WindowText,
    errors: Vec<String>,
}

impl Policy {
    /// Creates an empty builder of a policy.
    ///
    /// Use it when a program computes its rules. A policy that people edit is better kept as text, for
    /// [`Policy::from_toml`]: its errors have lines and columns, and `tidegate check` warns of probable mistakes.
    ///
    /// ```
    /// use tidegate::rules::{Policy, Rule};
    ///
    /// let login = Rule::builder("login").when("path", "/login").key(["ip"]).limit("5/m sliding-log");
    /// let policy = Policy::builder().rule(login).build()?;
    /// assert_eq!(policy.rules()[0].limit().map(ToString::to_string).as_deref(), Some("5/m sliding-log"));
    ///
    /// let error = Policy::builder().rule(Rule::builder("login").limit("60/min")).build().unwrap_err();
    /// assert!(error.to_string().starts_with("rule \"login\": limit \"60/min\": unknown unit \"min\""));
    /// # Ok::<(), tidegate::rules::PolicyError>(())
    /// ```
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }
}

impl PolicyBuilder {
    /// Appends a rule. The order matters only for rules with a decision and within a group: the first that matches
    /// decides.
    pub fn rule(mut self, rule: RuleBuilder) -> PolicyBuilder {
        self.rules.push(rule);
        self
    }

    /// Adds a zone of this size in bytes, which rules can name. A second zone of the same name replaces the first.
    pub fn zone(mut self, name: impl Into<String>, bytes: usize) -> PolicyBuilder {
        self.zones.insert(name.into(), bytes);
        self
    }

    /// Sets the verdict for requests to which no enforced rule applies: the field `unmatched` of the table `[rules]`.
    /// They are allowed unless it is set.
    #[doc(alias = "default deny")]
    pub fn unmatched(mut self, verdict: StaticVerdict) -> PolicyBuilder {
        self.unmatched = Some(verdict);
        self
    }

    /// Declares the attributes of requests beside those that frontends provide: the field `names` of the table
    /// `[attributes]`. A rule with any other attribute is an error then. A second call adds to the first.
    ///
    /// ```
    /// use tidegate::rules::{Policy, Rule};
    ///
    /// let rule = |key| Rule::builder("site").key([key]).limit("5/s");
    /// assert!(Policy::builder().attributes(["user", "plan"]).rule(rule("user")).build().is_ok());
    /// let error = Policy::builder().attributes(["user", "plan"]).rule(rule("usr")).build().unwrap_err();
    /// assert!(error.to_string().contains("did you mean \"user\"?"), "{error}");
    /// ```
    pub fn attributes<A: Into<String>>(mut self, names: impl IntoIterator<Item = A>) -> PolicyBuilder {
        self.attributes.get_or_insert_default().extend(names.into_iter().map(Into::into));
        self
    }

    /// Validates all rules and zones, as [`Policy::from_toml`] does for a file.
    ///
    /// # Errors
    /// All errors at once. Each message is that of the file, after the name of its rule in place of line and column.
    pub fn build(self) -> Result<Policy, PolicyError> {
        let mut complaints = Complaints::default();
        if self.rules.len() > MAX_RULES {
            complaints.push(Complaint::alone(too_many_rules()));
            return Err(PolicyError::in_code(complaints.shown(), &[]));
        }
        let (mut written, mut places) = (PolicyText::default(), Vec::new());
        for (index, rule) in self.rules.into_iter().enumerate() {
            places.push(format!("rule {:?}", rule.name()));
            written.rules.push(rule.written_at(index, &mut complaints));
        }
        for (name, bytes) in self.zones {
            let span = places.len()..places.len();
            places.push(format!("zone {name:?}"));
            let size = Some(Written { value: bytes.to_string(), span: span.clone() });
            written.zones.push(ZoneText { name: Written { value: name, span }, has_fields: true, size });
        }
        written.unmatched = self.unmatched.and_then(|verdict| choice(&DECISIONS, verdict));
        if let Some(names) = self.attributes {
            let span = places.len()..places.len();
            places.push("attributes".to_owned());
            let names = names.into_iter().map(|value| Written { value, span: span.clone() });
            written.attributes = Some(names.collect());
        }
        let mut valid = Valid::new(None, complaints);
        match valid.all(&written) {
            Some(all) => Ok(Policy::new(all.rules, all.zones, valid.slots, all.unmatched)),
            None => Err(PolicyError::in_code(valid.complaints.shown(), &places)),
        }
    }
}

impl PolicyError {
    /// Creates the error of a policy made in code, in which the position of a complaint is the index of its rule or
    /// zone.
    fn in_code(complaints: Vec<Complaint>, places: &[String]) -> PolicyError {
        let named = complaints.into_iter().map(|complaint| {
            let place = complaint.span.and_then(|span| places.get(span.start));
            // Some messages begin with the name of the rule already.
            let place = place.filter(|place| !complaint.what.starts_with(place.as_str()));
            Complaint::alone(place.map_or(String::new(), |place| format!("{place}: ")) + &complaint.what)
        });
        PolicyError { text: String::new(), complaints: named.collect() }
    }
}

impl Rule {
    /// Creates a builder of a rule with this name, under which its counts are kept.
    ///
    /// A rule needs a limit or a decision. Without conditions it applies to every request, and without a key it counts
    /// all of them together.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::Limit;
    /// use tidegate::rules::{Mode, Policy, Rule};
    ///
    /// let tenants = ["acme", "initech"].map(|tenant| {
    ///     Rule::builder(format!("tenant-{tenant}"))
    ///         .when("path", "/api/{*rest}")
    ///         .when("header.x-tenant", tenant)
    ///         .key(["user"])
    ///         .limit(Limit::per_second(10).burst(20))
    ///         .max_wait(Duration::from_millis(500))
    ///         .mode(Mode::Shadow)
    /// });
    /// let policy = tenants.into_iter().fold(Policy::builder(), |policy, rule| policy.rule(rule)).build()?;
    /// assert_eq!(policy.rules().len(), 2);
    /// # Ok::<(), tidegate::rules::PolicyError>(())
    /// ```
    pub fn builder(name: impl Into<String>) -> RuleBuilder {
        let text = RuleText { name: Some(Written::in_code(name.into())), ..RuleText::default() };
        RuleBuilder { text, errors: Vec::new() }.with("name", |_| ())
    }
}

impl RuleBuilder {
    /// Adds a condition: the attribute has to match this pattern. A rule applies if all of its conditions match.
    ///
    /// Attributes are `ip`, `path`, `method`, `host`, `header.NAME`, `cookie.NAME`, `query.NAME`, and names that the
    /// program sets, such as `user`. [`Condition`](crate::Condition#attributes) lists them, and all
    /// [patterns](crate::Condition#patterns):
    ///
    /// | pattern | matches |
    /// |---|---|
    /// | `ana` | exactly this value |
    /// | `an*` | every value with this prefix; `*` every value |
    /// | `10.0.0.0/8` | for `ip`: every address of the network |
    /// | `/users/{id}` | for `path`: any one segment in place of `{id}` |
    /// | `/api/{*rest}` | for `path`: everything below `/api/` |
    ///
    /// A second condition on one attribute is an error; several patterns are one call of [`RuleBuilder::when_any`].
    pub fn when(self, attribute: impl Into<String>, pattern: impl Into<String>) -> RuleBuilder {
        self.when_any(attribute, [pattern])
    }

    /// Adds a condition: the attribute has to match any of these patterns, of which there must be one at least.
    pub fn when_any<P: Into<String>>(
        mut self,
        attribute: impl Into<String>,
        patterns: impl IntoIterator<Item = P>,
    ) -> RuleBuilder {
        let condition = self.condition(attribute.into(), patterns);
        self.with("when", |text| text.when.push(condition))
    }

    /// Adds a condition: the request must not have the attribute. In a file it is `{ missing = true }`.
    pub fn when_missing(self, attribute: impl Into<String>) -> RuleBuilder {
        let condition = presence(attribute.into(), PatternText::Missing);
        self.with("when", |text| text.when.push(condition))
    }

    /// Adds a condition: the request has to have the attribute, with any value. In a file it is `{ present = true }`.
    pub fn when_present(self, attribute: impl Into<String>) -> RuleBuilder {
        let condition = presence(attribute.into(), PatternText::Present);
        self.with("when", |text| text.when.push(condition))
    }

    /// Adds a condition of an exception: the rule does not apply to a request that meets all conditions of its `unless`.
    ///
    /// Attributes and patterns are those of [`RuleBuilder::when`].
    ///
    /// ```
    /// use tidegate::rules::{Attributes, Policy, Rule};
    ///
    /// let rule = Rule::builder("site").unless("path", "/healthz").unless_any("method", ["GET", "HEAD"]).limit("5/s");
    /// let policy = Policy::builder().rule(rule).build()?;
    /// let applies = |path, method| !policy.matching(&Attributes::new().path(path).set("method", method)).is_empty();
    /// assert!(!applies("/healthz", "GET"));
    /// assert!(applies("/healthz", "POST") && applies("/x", "GET"));
    /// # Ok::<(), tidegate::rules::PolicyError>(())
    /// ```
    #[doc(alias = "not")]
    #[doc(alias = "except")]
    pub fn unless(self, attribute: impl Into<String>, pattern: impl Into<String>) -> RuleBuilder {
        self.unless_any(attribute, [pattern])
    }

    /// Adds a condition of an exception: the attribute matches any of these patterns, of which there must be one at
    /// least.
    pub fn unless_any<P: Into<String>>(
        mut self,
        attribute: impl Into<String>,
        patterns: impl IntoIterator<Item = P>,
    ) -> RuleBuilder {
        let condition = self.condition(attribute.into(), patterns);
        self.with("unless", |text| text.unless.push(condition))
    }

    /// Adds a condition of an exception: the request does not have the attribute.
    pub fn unless_missing(self, attribute: impl Into<String>) -> RuleBuilder {
        let condition = presence(attribute.into(), PatternText::Missing);
        self.with("unless", |text| text.unless.push(condition))
    }

    /// Adds a condition of an exception: the request has the attribute, with any value.
    pub fn unless_present(self, attribute: impl Into<String>) -> RuleBuilder {
        let condition = presence(attribute.into(), PatternText::Present);
        self.with("unless", |text| text.unless.push(condition))
    }

    /// Adds the rule to a group. Of the enforced members of a group the first that applies decides, in the order in
    /// which the rules were added to the policy; see [`Policy`](Policy#order-of-decisions).
    #[doc(alias = "first match")]
    pub fn group(self, name: impl Into<String>) -> RuleBuilder {
        self.with("group", |text| text.group = Some(Written::in_code(name.into())))
    }

    /// Sets the attributes that form the key, at most 8. Each combination of their values has its own count.
    ///
    /// The attributes are those of [conditions](crate::Condition#attributes).
    ///
    /// | part of the key | counted as |
    /// |---|---|
    /// | `ip` | the address, or its network: IPv6 by `/64` unless [`RuleBuilder::ipv6_prefix`] is set |
    /// | any other | its value; an empty value is a value |
    /// | missing | as [`RuleBuilder::on_missing`] says: all such requests together unless set |
    /// | with several values | as [`RuleBuilder::on_repeated`] says: all such requests together unless set |
    pub fn key<A: Into<String>>(mut self, attributes: impl IntoIterator<Item = A>) -> RuleBuilder {
        let key = self.list("key", attributes);
        self.with("key", |text| text.key = Some(key))
    }

    /// Sets the limit: a [`Limit`], or its [text](Limit#text-of-a-limit), such as `"10/s burst 20"`.
    pub fn limit<L>(mut self, limit: L) -> RuleBuilder
    where
        L: TryInto<Limit>,
        L::Error: fmt::Display,
    {
        let limit = limit_text(limit, &mut self.errors);
        self.with("limit", |text| text.limit = limit)
    }

    /// Sets a decision without a limit for all requests that match. Such a rule has a name, conditions, trusted attributes
    /// and a mode only.
    pub fn decision(self, decision: StaticVerdict) -> RuleBuilder {
        self.with("decision", |text| text.decision = choice(&DECISIONS, decision))
    }

    /// Sets the mode: enforced, which is the default, or shadow (a dry run).
    #[doc(alias = "dry run")]
    pub fn mode(self, mode: Mode) -> RuleBuilder {
        self.with("mode", |text| text.mode = choice(&MODES, mode))
    }

    /// Makes the rule a candidate: it is measured beside this rule, which it would replace, and denies no request.
    /// Conditions, key and zone are those of that rule. Its [`RuleCounts`](crate::RuleCounts) count the requests that
    /// it would decide otherwise, as `looser` and `stricter`.
    #[doc(alias = "A/B test")]
    pub fn candidate_for(self, rule: impl Into<String>) -> RuleBuilder {
        self.with("candidate_for", |text| text.candidate_for = Some(Written::in_code(rule.into())))
    }

    /// Sets the weight of each unit of a request's cost under this rule; 1 by default.
    pub fn cost(self, weight: u64) -> RuleBuilder {
        self.with("cost", |text| text.cost = Some(Written::in_code(weight)))
    }

    /// Sets the longest delay that the rule grants, at most a year. It is rounded up to whole microseconds. Unless set,
    /// a leaky bucket delays requests by its whole queue, and other algorithms delay none.
    pub fn max_wait(self, longest: Duration) -> RuleBuilder {
        self.with("max_wait", |text| text.max_wait = Some(duration_text(longest)))
    }

    /// Adds a window to the schedule. If windows overlap, the first one that was added is in force.
    pub fn window(mut self, window: ScheduleWindow) -> RuleBuilder {
        self.errors.extend(window.errors);
        self.with("schedule", |text| text.schedule.push(window.text))
    }

    /// Sets the behavior for requests in which a part of the key is missing.
    pub fn on_missing(self, behavior: OnMissing) -> RuleBuilder {
        self.with("on_missing", |text| text.on_missing = choice(&MISSING, behavior))
    }

    /// Sets the behavior for requests that have several values for a part of the key.
    pub fn on_repeated(self, behavior: OnRepeated) -> RuleBuilder {
        self.with("on_repeated", |text| text.on_repeated = choice(&REPEATED, behavior))
    }

    /// Sets the behavior while a remote store fails: a share of the limit on this node, fail-open or fail-closed. A
    /// store in memory cannot fail.
    #[doc(alias = "fail-open")]
    #[doc(alias = "fail-closed")]
    pub fn on_store_failure(self, behavior: OnStoreFailure) -> RuleBuilder {
        self.with("on_store_failure", |text| text.on_store_failure = choice(&FAILURES, behavior))
    }

    /// Sets the behavior for keys that find no free cell in a zone.
    #[doc(alias = "eviction")]
    pub fn when_full(self, behavior: WhenFull) -> RuleBuilder {
        self.with("when_full", |text| text.when_full = choice(&WHEN_FULL, behavior))
    }

    /// Counts in this zone, which the policy has to have; see [`PolicyBuilder::zone`]. On a remote store it has no
    /// effect.
    pub fn zone(self, zone: impl Into<String>) -> RuleBuilder {
        self.with("zone", |text| text.zone = Some(Written::in_code(zone.into())))
    }

    /// Sets the limit of one value of the key, in place of that of the rule and of its schedule. The key has one part, and
    /// the value is in the spelling in which the rule counts: an address by its network.
    ///
    /// ```
    /// use tidegate::rules::{Policy, Rule};
    ///
    /// let api = Rule::builder("api").key(["user"]).limit("10/m").limit_for("ana", "50/m").limit_for("bob", "5/m");
    /// let policy = Policy::builder().rule(api).build()?;
    /// assert_eq!(policy.rules()[0].limit_for().map(|(value, _)| value).collect::<Vec<_>>(), ["ana", "bob"]);
    /// # Ok::<(), tidegate::rules::PolicyError>(())
    /// ```
    pub fn limit_for(self, value: impl Into<String>, limit: impl fmt::Display) -> RuleBuilder {
        let one = (Written::in_code(value.into()), Written::in_code(limit.to_string()));
        self.with("limit_for", |text| text.limit_for.push(one))
    }

    /// Sets the penalty: a key that the rule denies `after` times within a span is banned for another one, at most a year.
    /// Spans are rounded up to whole microseconds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::rules::{Policy, Rule};
    ///
    /// let (minute, login) = (Duration::from_secs(60), Rule::builder("login").key(["user"]).limit("5/m"));
    /// let policy = Policy::builder().rule(login.penalty(3, minute, 10 * minute)).build()?;
    /// assert_eq!(policy.rules()[0].penalty().map(|penalty| penalty.lasts), Some(10 * minute));
    /// # Ok::<(), tidegate::rules::PolicyError>(())
    /// ```
    #[doc(alias = "fail2ban")]
    #[doc(alias = "ban")]
    pub fn penalty(self, after: u64, within: Duration, lasts: Duration) -> RuleBuilder {
        let text = PenaltyText {
            after: Some(Written::in_code(after)),
            within: duration_text(within).into(),
            lasts: duration_text(lasts).into(),
            fields: vec!["after", "within", "for"],
            ..PenaltyText::default()
        };
        self.with("penalty", |rule| rule.penalty = Some(text))
    }

    /// Counts IPv4 addresses of one network of this prefix length together; 32 by default.
    pub fn ipv4_prefix(self, bits: u8) -> RuleBuilder {
        self.with("ipv4_prefix", |text| text.ipv4_prefix = Some(Written::in_code(bits.into())))
    }

    /// Counts IPv6 addresses of one network of this prefix length together; 64 by default.
    pub fn ipv6_prefix(self, bits: u8) -> RuleBuilder {
        self.with("ipv6_prefix", |text| text.ipv6_prefix = Some(Written::in_code(bits.into())))
    }

    /// Names the parts of the key, and the attributes of conditions, that were verified before the request reaches the
    /// gate, such as a header field of an API key that a proxy checks. In a file it suppresses the warnings about a key
    /// and about conditions that any client can choose.
    pub fn trusted<A: Into<String>>(mut self, attributes: impl IntoIterator<Item = A>) -> RuleBuilder {
        let trusted = self.list("trusted", attributes);
        self.with("trusted", |text| text.trusted = Some(trusted))
    }

    /// Sets a field, and records that it is present.
    fn with(mut self, field: &'static str, set: impl FnOnce(&mut RuleText)) -> RuleBuilder {
        if !self.text.says(field) {
            self.text.fields.push(Written::in_code(field));
        }
        set(&mut self.text);
        self
    }

    /// Returns a condition, and records the errors of its list.
    fn condition<P: Into<String>>(
        &mut self,
        attribute: String,
        patterns: impl IntoIterator<Item = P>,
    ) -> ConditionText {
        let patterns = self.list(&attribute, patterns);
        if patterns.is_empty() {
            self.errors.push(empty_list(&attribute));
        }
        let pattern = |text: Written<String>| Written::in_code(PatternText::Text(text.value));
        let any_of = patterns.into_iter().map(pattern).collect();
        ConditionText { attribute: Written::in_code(attribute), any_of }
    }

    fn list<V: Into<String>>(
        &mut self,
        of: &str,
        values: impl IntoIterator<Item = V>,
    ) -> Vec<Written<String>> {
        let list: Vec<_> =
            values.into_iter().take(MAX_LIST + 1).map(|value| Written::in_code(value.into())).collect();
        if list.len() > MAX_LIST {
            self.errors.push(too_long_list(of));
        }
        list
    }

    fn name(&self) -> &str {
        self.text.name.as_ref().map_or("", |name| &name.value)
    }

    /// Returns the rule with its index in place of every position, and reports the errors found so far. The conditions
    /// are sorted, as those of a file are.
    fn written_at(self, index: usize, complaints: &mut Complaints) -> RuleText {
        let RuleBuilder { mut text, errors } = self;
        errors.into_iter().for_each(|what| complaints.push(Complaint::at(index..index, what)));
        for conditions in [&mut text.when, &mut text.unless] {
            conditions.sort_by(|one, other| one.attribute.value.cmp(&other.attribute.value));
        }
        text.move_to(index);
        text
    }
}

impl ScheduleWindow {
    /// Creates a window between two times: of every day (`"09:00"`), of every year (`"11-11T00:00"`) or of one year
    /// (`"2026-11-11T00:00"`).
    pub fn new(from: impl Into<String>, to: impl Into<String>) -> ScheduleWindow {
        let mut text = WindowText { fields: vec!["from", "to"], ..WindowText::default() };
        (text.from, text.to) = (Some(Written::in_code(from.into())), Some(Written::in_code(to.into())));
        ScheduleWindow { text, errors: Vec::new() }
    }

    /// Restricts the window to these days of the week, such as `"sat"`.
    pub fn days<D: Into<String>>(self, days: impl IntoIterator<Item = D>) -> ScheduleWindow {
        let days = days.into_iter().map(|day| Written::in_code(day.into())).collect();
        self.with("days", |text| text.days = Some(days))
    }

    /// Sets the time zone by its IANA name, such as `"Europe/Berlin"`; UTC by default.
    pub fn timezone(self, name: impl Into<String>) -> ScheduleWindow {
        self.with("timezone", |text| text.timezone = Some(Written::in_code(name.into())))
    }

    /// Sets the limit in this window.
    pub fn limit<L>(mut self, limit: L) -> ScheduleWindow
    where
        L: TryInto<Limit>,
        L::Error: fmt::Display,
    {
        let limit = limit_text(limit, &mut self.errors);
        self.with("limit", |text| text.limit = limit)
    }

    /// Sets the weight of each unit of a request's cost in this window.
    pub fn cost(self, weight: u64) -> ScheduleWindow {
        self.with("cost", |text| text.cost = Some(Written::in_code(weight)))
    }

    /// Sets the longest delay that the rule grants in this window, at most a year.
    pub fn max_wait(self, longest: Duration) -> ScheduleWindow {
        self.with("max_wait", |text| text.max_wait = Some(duration_text(longest)))
    }

    /// Sets the mode in this window.
    pub fn mode(self, mode: Mode) -> ScheduleWindow {
        self.with("mode", |text| text.mode = choice(&MODES, mode))
    }

    fn with(mut self, field: &'static str, set: impl FnOnce(&mut WindowText)) -> ScheduleWindow {
        self.text.fields.push(field);
        set(&mut self.text);
        self
    }
}

/// Returns a condition on the presence of an attribute.
fn presence(attribute: String, pattern: PatternText) -> ConditionText {
    ConditionText { attribute: Written::in_code(attribute), any_of: vec![Written::in_code(pattern)] }
}

/// Returns the text of a limit, which parses as the same limit. If the conversion fails, records the error and returns
/// a valid limit in its place, so that the rest of the rule is validated as well.
fn limit_text<L>(limit: L, errors: &mut Vec<String>) -> Option<Written<String>>
where
    L: TryInto<Limit>,
    L::Error: fmt::Display,
{
    let limit: Result<Limit, _> = limit.try_into();
    let limit = limit.unwrap_or_else(|error| {
        errors.push(error.to_string());
        Limit::per_second(1)
    });
    Some(Written::in_code(limit.to_string()))
}

/// Returns a duration in microseconds, rounded up.
fn duration_text(duration: Duration) -> Written<String> {
    Written::in_code(format!("{}us", duration.as_nanos().div_ceil(1000)))
}

fn choice<T: Copy + PartialEq>(known: &[(&'static str, T)], value: T) -> Option<Written<String>> {
    Some(Written::in_code(word_for(known, value)))
}
