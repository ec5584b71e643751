//! What groups cost: every set with its limits in one group, beside the same set without, and an admit to which one
//! member of a hundred applies.

use std::hint::black_box;

use tidegate::Zone;
use tidegate_rules::{Attributes, Gate, Policy};

use super::admit::passes;
use super::sets::{APPLYING, ROOMY, SETS, Set};
use super::table::{Candidate, Table};
use harness::Goal;

/// The sizes whose ratio is compared.
const COUNTS: [u32; 2] = [10, 10_000];
const TIMES: u64 = 5_000;
/// The set that has a goal of its own.
const SHOP: &str = "shop";
/// How many rules are in the group.
const MEMBERS: u32 = 100;

/// Prints a row for each set, and one for the group.
pub(super) fn run() -> Vec<Goal> {
    println!("the limits of every set in one group: 10,000 rules \u{f7} 10 rules, of the same rounds");
    println!("not measured: making the attributes, eight of them; reading the rules\n");
    println!("{:<10} {:^21} {:^21}", "", "matching", "admit on a zone");
    println!("{:<10} {:>10} {:>10} {:>10} {:>10}", "", "without", "grouped", "without", "grouped");
    let mut goals: Vec<_> = SETS.iter().map(compare).collect();
    goals.push(one_of_a_hundred());
    goals
}

/// A set of two sizes, without a group and with one.
fn compare(set: &Set) -> Goal {
    let known: Vec<_> = [false, true]
        .into_iter()
        .flat_map(|is_grouped| COUNTS.map(|count| Known::new(set, count, is_grouped)))
        .collect();
    let matching = Table::measure(known.iter().map(Known::matching).collect());
    let admit = Table::measure(known.iter().map(Known::admit).collect());
    let of = |table: &Table| [table.ratio(1, 0), table.ratio(3, 2)];
    let ([plain, grouped], [admit_plain, admit_grouped]) = (of(&matching), of(&admit));
    println!("{:<10} {plain:>10.2} {grouped:>10.2} {admit_plain:>10.2} {admit_grouped:>10.2}", set.name);
    if set.name == SHOP {
        return Goal::at_most(set.grouped, grouped, 1.5, 1.5);
    }
    let most = (grouped / plain).max(admit_grouped / admit_plain);
    Goal::at_most(set.grouped, most, 1.1, 1.1)
}

/// A set of some size, and a request to it.
struct Known {
    policy: Policy,
    gate: Gate,
    request: Attributes<'static>,
}

impl Known {
    fn new(set: &Set, count: u32, is_grouped: bool) -> Known {
        let policy = if is_grouped { set.grouped_policy(count) } else { set.policy(count) };
        Known {
            gate: Gate::new(policy.clone(), Zone::new(1 << 20)).expect("the store supports the policy"),
            policy,
            request: set.request(1, count),
        }
    }

    fn matching(&self) -> Candidate<'_> {
        Candidate::new("matching", TIMES, APPLYING, || {
            black_box(&self.policy).matching(black_box(&self.request)).len() as u64
        })
    }

    fn admit(&self) -> Candidate<'_> {
        Candidate::new("admit", TIMES, 1, || u64::from(passes(&self.gate, &self.request)))
    }
}

/// An admit to which two rules apply, and one to which a rule and one member of a group apply.
fn one_of_a_hundred() -> Goal {
    let gates = [two_rules(), a_rule_and_a_group()].map(|text| {
        let policy = Policy::from_toml(&text).expect("rules");
        Gate::new(policy, Zone::new(1 << 20)).expect("the store supports the policy")
    });
    let request = request();
    let names = ["Gate, two rules apply", "Gate, a rule and one of a group of 100"];
    let candidates = names.into_iter().zip(&gates).map(|(name, gate)| {
        let request = &request;
        Candidate::new(name, TIMES, 1, move || u64::from(passes(gate, request)))
    });
    let table = Table::measure(candidates.collect());
    println!();
    table
        .print("an answer of Gate::admit on a zone", "making the attributes; keys that are not in the cache");
    Goal::at_most("rules/admit-group", table.ratio(1, 0), 1.2, 1.2)
}

fn limit(name: &str, more: &str) -> String {
    format!("[[rule]]\nname = '{name}'\nkey = ['user']\nlimit = '{ROOMY}'\n{more}")
}

fn two_rules() -> String {
    [limit("all", ""), limit("plan42", "when = { plan = 'plan42' }\n")].concat()
}

/// Members for one plan each, and a default, which matches as well.
fn a_rule_and_a_group() -> String {
    let plan = |number| format!("group = 'plan'\nwhen = {{ plan = 'plan{number}' }}\n");
    let members = (1..MEMBERS).map(|number| limit(&format!("plan{number}"), &plan(number)));
    let default = limit("default", "group = 'plan'\n");
    [limit("all", "")].into_iter().chain(members).chain([default]).collect()
}

fn request() -> Attributes<'static> {
    Attributes::new()
        .set("ip", "192.0.2.7")
        .set("method", "GET")
        .set("host", "api.example.com")
        .set("path", "/api/v1/orders/4217")
        .set("tenant", "tenant00001")
        .set("user", "ana")
        .set("plan", "plan42")
        .set("header.x-api-key", "team00001-k3y")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_member_decides_beside_the_rule_for_all() {
        for text in [two_rules(), a_rule_and_a_group()] {
            let gate = Gate::new(Policy::from_toml(&text).unwrap(), Zone::new(1 << 16))
                .expect("the store supports the policy");
            assert!(passes(&gate, &request()));
            let counts = gate.counts().into_iter();
            let counted: Vec<_> = counts.filter(|(_, counts)| counts.allowed > 0).collect();
            assert_eq!(counted.iter().map(|(rule, _)| rule.name()).collect::<Vec<_>>(), ["all", "plan42"]);
        }
    }

    #[test]
    fn a_grouped_set_is_the_set_with_its_limits_in_a_group() {
        for set in &SETS {
            let (plain, grouped) = (set.policy(100), set.grouped_policy(100));
            assert_eq!(plain.rules().len(), grouped.rules().len(), "{}", set.name);
            let is_so = |(number, rule): (usize, &tidegate_rules::Rule)| {
                (number > 0 && rule.limit().is_some()) == rule.group().is_some()
            };
            assert!(grouped.rules().iter().enumerate().all(is_so), "{}", set.name);
            let gate = Gate::new(grouped, Zone::new(1 << 16)).expect("the store supports the policy");
            assert!(passes(&gate, &set.request(1, 100)), "{}", set.name);
        }
    }
}
