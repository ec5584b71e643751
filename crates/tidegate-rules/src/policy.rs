//! A policy: all rules in force, and the search for those that apply.
//!
//! A policy is immutable. Its index finds the rules of a request by the values that the request has, so the cost of a
//! decision depends on the rules that apply and hardly on the number of all rules.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::attributes::Attributes;
use crate::condition::Spellings;
use crate::index::{Index, RuleId, RuleIds};
use crate::normalized::{NormalizedRequest, Slots};
use crate::rule::{GroupId, Limited, Mode, Rule, StaticVerdict};

/// The maximum number of conditions that are compared to find rules that apply together.
const MAX_COMPARED: usize = 4_000_000;

/// The set of all rules in force.
///
/// [`Policy::from_toml`] reads it from a file, [`Policy::builder`] makes it in code; both have the same fields.
///
/// ```
/// use tidegate::Zone;
/// use tidegate::rules::{Attributes, Gate, Policy};
///
/// let policy = Policy::from_toml(
///     r#"
///     [zone.logins] # memory of its own, beside that of the gate's store
///     size = "1MiB"
///
///     [[rule]]
///     name = "scrapers"
///     when = { ip = ["198.51.100.0/24", "2001:db8:bad::/48"] }
///     decision = "deny"
///
///     [[rule]]
///     name = "login"
///     when = { path = ["/login", "/password/{*rest}"], method = "POST" }
///     key = ["ip", "user"]
///     limit = "5/60s sliding-log"
///     zone = "logins"
///
///     [[rule]]
///     name = "api"
///     when = { path = "/api/{*rest}", header.x-plan = "free*" }
///     key = ["header.x-api-key"]
///     limit = "10/s burst 20"
///     on_missing = "skip"
///     on_store_failure = "open"
///     schedule = [
///       { from = "02:00", to = "04:00", days = ["sun"], timezone = "Europe/Berlin", limit = "5/s" },
///     ]
///
///     [[rule]]
///     name = "api-stricter"
///     candidate_for = "api"
///     limit = "8/s burst 16"
///
///     [[rule]]
///     name = "everything"
///     limit = "2000/s burst 500"
///     mode = "shadow"
///     "#,
/// )?;
/// let gate = Gate::new(policy, Zone::new(1 << 20))?;
///
/// let request = |ip| Attributes::new().set("ip", ip).set("user", "ana").path("/login").set("method", "POST");
/// let answer = gate.admit(&request("192.0.2.7")).now()?;
/// assert!(answer.is_allowed() && answer.rule() == Some("login"));
/// let answer = gate.admit(&request("198.51.100.7")).now()?;
/// assert!(answer.is_forbidden() && answer.rule() == Some("scrapers"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Order of decisions
///
/// 1. Rules with a `decision`, in the order of the file: the first that applies decides, and no limit is evaluated.
/// 2. Rules with a limit: if all of them allow the request, all are charged; if one denies it, none is. Their order
///    has no effect, except within a group.
/// 3. Shadow rules and candidates: they count, and never change the decision.
///
/// Of the rules with one `group` only the first in the file that applies takes part in step 2: the enforced member whose
/// conditions match, whose `unless` does not, and whose key is complete if it has `on_missing = "skip"`. A member without
/// conditions is the default, and stands last. Each member is a rule with counts of its own, so a key that changes from
/// one to another starts with a full quota. Members in shadow mode are measured whenever their own conditions match.
///
/// ```
/// use tidegate::rules::{Attributes, Policy, Gate};
/// use tidegate::Zone;
///
/// let policy = Policy::from_toml(
///     r#"
///     [[rule]]
///     name = "vip"
///     group = "plan"
///     when = { plan = "vip" }
///     key = ["user"]
///     limit = "100/s"
///
///     [[rule]]
///     name = "anonymous"
///     group = "plan"
///     when = { user = { missing = true } }
///     key = ["ip"]
///     limit = "1/s"
///
///     [[rule]]
///     name = "everyone-else"
///     group = "plan"
///     unless = { path = "/healthz" }
///     key = ["user"]
///     limit = "10/s"
///     "#,
/// )?;
/// let gate = Gate::new(policy, Zone::new(1 << 20))?;
/// let ana = Attributes::new().path("/x").set("user", "ana");
/// assert_eq!(gate.admit(&ana.clone().set("plan", "vip")).now()?.rule(), Some("vip"));
/// assert_eq!(gate.admit(&ana).now()?.rule(), Some("everyone-else"));
/// assert_eq!(gate.admit(&Attributes::new().path("/x")).now()?.rule(), Some("anonymous"));
/// assert_eq!(gate.admit(&ana.path("/healthz")).now()?.rule(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A request to which no rule applies is allowed, unless the table `[rules]` has `unmatched = "deny"`.
///
/// # Fields of a rule
///
/// | field of `[[rule]]` | value | unless set |
/// |---|---|---|
/// | `name` | letters, digits and `_ - . : /`, at most 128 bytes, unique; counts are kept under it | required |
/// | `when` | attributes, each with a pattern or a list of patterns: [`Condition`] | every request |
/// | `unless` | the same; the rule does not apply to requests that meet all of it: [`RuleBuilder::unless`] | none |
/// | `group` | a name as that of a rule; of rules with one group the first that applies decides | none |
/// | `key` | a list of at most 8 attributes: [`RuleBuilder::key`] | one count for all requests |
/// | `limit` | the [text of a limit], such as `"10/s burst 20"` | required without `decision` |
/// | `decision` | `"allow"` or `"deny"`, in place of a limit: [`StaticVerdict`] | none |
/// | `mode` | `"enforce"` or `"shadow"`: [`Mode`] | `"enforce"` |
/// | `candidate_for` | the name of a rule with a limit: [`RuleBuilder::candidate_for`] | none |
/// | `cost` | the weight of each unit of a request's cost, at least 1 | 1 |
/// | `max_wait` | the longest delay that the rule grants, at most a year: `"500ms"`, `"1m30s"` | see below |
/// | `schedule` | a list of at most 255 windows: [`ScheduleWindow`] | none |
/// | `on_missing` | `"share"` or `"skip"`: [`OnMissing`] | `"share"` |
/// | `on_repeated` | `"share"`, `"deny"`, `"first"` or `"last"`: [`OnRepeated`] | `"share"` |
/// | `on_store_failure` | `"local"`, `"open"` or `"closed"`, for remote stores: [`OnStoreFailure`] | `"local"` |
/// | `zone` | the name of a table `[zone.NAME]` of the file, for stores in memory | the gate's store |
/// | `when_full` | `"share"` or `"forget"`, for keys that find no free cell in a zone: [`WhenFull`] | `"share"` |
/// | `ipv4_prefix`, `ipv6_prefix` | the prefix length by which a key groups addresses: [`Grouping`] | 32, 64 |
/// | `trusted` | attributes of the key and of conditions that were verified before: [`RuleBuilder::trusted`] | none |
///
/// Unless `max_wait` is set, a leaky bucket delays requests by its whole queue, and other algorithms delay none.
///
/// Any other field is an error. A rule with a `decision` has no fields but `name`, `when`, `unless`, `mode` and `trusted`
/// beside it. A candidate has no fields but `name`, `limit`, `cost`, `max_wait` and `schedule` beside `candidate_for`; the others
/// are those of its rule.
///
/// A table `[zone.NAME]` has one field: `size`, as in `"16MiB"`, at least `"4KiB"`. A policy has at most 64 zones of
/// 64 GiB in all, and at most 10,000 rules.
///
/// The table `[rules]` has one field: `unmatched`, `"allow"` or `"deny"`: the verdict for requests to which no enforced
/// rule applies; `"allow"` unless set.
///
/// The table `[attributes]` has one field: `names`, a list of at most 1,000 attributes. With it, an attribute of a rule
/// that is neither in the list nor one of `ip`, `path`, `method`, `host`, `header.NAME`, `cookie.NAME` and `query.NAME` is
/// an error, because it is probably misspelled.
///
/// [`Condition`]: crate::Condition
/// [`Grouping`]: crate::Grouping
/// [`OnMissing`]: crate::OnMissing
/// [`OnRepeated`]: crate::OnRepeated
/// [`OnStoreFailure`]: tidegate_core::OnStoreFailure
/// [`RuleBuilder::candidate_for`]: crate::RuleBuilder::candidate_for
/// [`RuleBuilder::key`]: crate::RuleBuilder::key
/// [`RuleBuilder::trusted`]: crate::RuleBuilder::trusted
/// [`RuleBuilder::unless`]: crate::RuleBuilder::unless
/// [`ScheduleWindow`]: crate::ScheduleWindow
/// [`StaticVerdict`]: crate::StaticVerdict
/// [`WhenFull`]: tidegate_core::WhenFull
/// [text of a limit]: tidegate_core::Limit#text-of-a-limit
#[derive(Clone, Debug, Default)]
#[doc(alias = "rules file")]
#[doc(alias = "configuration")]
pub struct Policy {
    rules: Box<[Rule]>,
    zones: Box<[NamedZone]>,
    slots: Slots,
    attributes: Box<[Box<str>]>,
    index: Index,
    names: HashMap<Arc<str>, RuleId>,
    denies_unmatched: bool,
}

/// A zone that rules can name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedZone {
    /// The name of the zone.
    pub name: Box<str>,
    /// The size of the zone in bytes.
    pub bytes: usize,
}

impl Policy {
    pub(crate) fn new(
        rules: Vec<Rule>,
        zones: Vec<NamedZone>,
        slots: Slots,
        unmatched: StaticVerdict,
    ) -> Policy {
        // A candidate applies when its rule applies, so it is not in the index.
        let conditions = rules.iter().map(|rule| {
            let is_candidate = rule.limited().is_some_and(|limited| limited.candidate_for.is_some());
            (!is_candidate).then_some(&*rule.conditions)
        });
        let index = Index::new(conditions);
        let names = rules.iter().map(|rule| rule.name.clone()).zip(0..).collect();
        let attributes = slots.names();
        let denies_unmatched = unmatched == StaticVerdict::Deny;
        Policy { rules: rules.into(), zones: zones.into(), slots, attributes, index, names, denies_unmatched }
    }

    /// Returns all rules, in the order of the file.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the zones that rules can name.
    pub fn zones(&self) -> &[NamedZone] {
        &self.zones
    }

    /// Returns the verdict for requests to which no enforced rule applies.
    #[doc(alias = "default deny")]
    pub fn unmatched(&self) -> StaticVerdict {
        if self.denies_unmatched { StaticVerdict::Deny } else { StaticVerdict::Allow }
    }

    /// Returns true if a rule uses the attribute, or it is declared, or one that frontends provide.
    pub(crate) fn knows(&self, attribute: &str) -> bool {
        self.slots.knows(attribute)
    }

    /// Returns the names of all attributes that rules use. Other attributes of a request have no effect.
    ///
    /// ```
    /// use tidegate::rules::Policy;
    ///
    /// let text = "[[rule]]\nname = 'a'\nwhen = { path = '/x' }\nkey = ['ip', 'header.X-Key']\nlimit = '1/s'";
    /// let policy = Policy::from_toml(text)?;
    /// assert_eq!(policy.attributes().collect::<Vec<_>>(), ["header.x-key", "ip", "path"]);
    /// # Ok::<(), tidegate::rules::PolicyError>(())
    /// ```
    pub fn attributes(&self) -> impl Iterator<Item = &str> {
        self.attributes.iter().map(|name| &**name)
    }

    /// Returns the rule with this name, if any.
    pub fn named(&self, name: &str) -> Option<&Rule> {
        self.id_of(name).map(|id| self.rule(id))
    }

    pub(crate) fn id_of(&self, name: &str) -> Option<RuleId> {
        self.names.get(name).copied()
    }

    /// Returns the rules that apply to a request, in the order of the file, without candidates.
    ///
    /// All members of a group whose conditions match are returned. Which one of them decides may depend on the time, so
    /// only a gate chooses.
    ///
    /// For tests of a policy and for tools. It allocates; a gate uses the index directly.
    ///
    /// ```
    /// use tidegate::rules::{Attributes, Policy};
    ///
    /// let rule = |name, path| format!("[[rule]]\nname = '{name}'\nwhen = {{ path = '{path}' }}\nlimit = '1/s'\n");
    /// let policy = Policy::from_toml(&[rule("all", "/{*rest}"), rule("api", "/api/{*rest}")].concat())?;
    /// let names: Vec<_> = policy.matching(&Attributes::new().path("/x")).iter().map(|rule| rule.name()).collect();
    /// assert_eq!(names, ["all"]);
    /// # Ok::<(), tidegate::rules::PolicyError>(())
    /// ```
    pub fn matching(&self, attributes: &Attributes<'_>) -> Vec<&Rule> {
        let seen = self.see(attributes);
        self.applying(&seen).into_iter().map(|id| self.rule(id)).collect()
    }

    /// Returns a rule to whose requests more than `most` enforced limits are certain to apply, and the minimum number
    /// that apply. A group counts as one limit. `None` if there is none, or if the search would take too long.
    ///
    /// ```
    /// use tidegate::rules::Policy;
    ///
    /// let rule = |name, path| format!("[[rule]]\nname = '{name}'\nwhen = {{ path = '{path}' }}\nlimit = '1/s'\n");
    /// let policy = Policy::from_toml(&[rule("a", "/api/{*rest}"), rule("b", "/api/x"), rule("c", "/y")].concat())?;
    /// assert_eq!(policy.more_together_than(1).map(|(rule, count)| (rule.name(), count)), Some(("b", 2)));
    /// assert!(policy.more_together_than(2).is_none());
    /// # Ok::<(), tidegate::rules::PolicyError>(())
    /// ```
    pub fn more_together_than(&self, most: usize) -> Option<(&Rule, usize)> {
        let always = |rule: &&Rule| rule.limited().is_some_and(Limited::is_always_enforced);
        let enforced: Vec<_> = self.rules.iter().filter(always).collect();
        if enforced.len() <= most {
            return None;
        }
        let decides = |rule: &&Rule| rule.mode == Mode::Enforce && rule.limited().is_none();
        let deciding: Vec<_> = self.rules.iter().filter(decides).collect();
        let mut left = MAX_COMPARED;
        for rule in &enforced {
            let conditions = rule.conditions.len() + rule.unless.len();
            let compared = (enforced.len() + deciding.len()) * (1 + conditions);
            left = left.checked_sub(compared)?;
            let mut groups: HashSet<GroupId> = HashSet::new();
            let mut is_alone = |wide: &Rule| wide.group_id().is_none_or(|group| groups.insert(group));
            let count = enforced.iter().filter(|wide| wide.covers(rule) && is_alone(wide)).count();
            // If a fixed decision applies to all requests of the rule, no limit is evaluated.
            if count > most && !deciding.iter().any(|wide| wide.covers(rule)) {
                return Some((rule, count));
            }
        }
        None
    }

    /// Returns a request as these rules see it.
    pub(crate) fn see<'a>(&self, attributes: &'a Attributes<'_>) -> NormalizedRequest<'a> {
        self.slots.see(attributes)
    }

    /// Returns the rules that apply, in the order of the file.
    pub(crate) fn applying(&self, seen: &NormalizedRequest<'_>) -> RuleIds {
        let mut found = self.index.candidates(seen);
        found.retain(|&mut id| {
            let rule = self.rule(id);
            let reading = rule.reading();
            let is_any = reading == Spellings::Any;
            // The condition by which the index found a rule matches in one spelling.
            let is_known = |place| is_any && self.index.stands_under(id, place);
            let mut conditions = rule.conditions.iter().enumerate();
            conditions.all(|(place, condition)| is_known(place) || condition.holds(seen, reading))
                && !rule.is_excepted(seen)
        });
        found
    }

    pub(crate) fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id as usize]
    }
}
