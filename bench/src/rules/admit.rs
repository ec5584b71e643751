//! A whole answer of a gate, beside one take of whoever has no rules.

use std::hint::black_box;

use tidegate::{Ask, DynamicAsk, DynamicLimiter, PreparedLimit, Zone};
use tidegate_rules::{Attributes, Gate, Policy};

use super::sets::ROOMY;
use super::table::{Candidate, Table};
use harness::Goal;

const TIMES: u64 = 5_000;
const IP: &str = "192.0.2.7";
/// What denies nearly everything.
const TIGHT: &str = "1/h";

/// Prints a table, the take without rules first. There is no goal.
pub(super) fn run() -> Vec<Goal> {
    let adhoc = &DynamicLimiter::on(&Zone::new(1 << 20), "adhoc");
    let limit: &PreparedLimit = &adhoc.prepare(black_box(ROOMY).parse().expect("a limit"));
    let mut candidates = vec![Candidate::new("AdHoc::take", TIMES, 1, || {
        u64::from(adhoc.admit(black_box(IP), limit, Ask::ONE).is_allowed())
    })];
    for count in [2, 5] {
        let keys: Vec<_> = (0..count).map(|number| format!("{number}")).collect();
        candidates.push(Candidate::new(format!("AdHoc::take_all of {count}"), TIMES, 1, move || {
            let asks: Vec<_> = keys.iter().map(|key| DynamicAsk::new(key, limit, Ask::ONE)).collect();
            u64::from(adhoc.admit_all(&asks).is_allowed())
        }));
    }
    candidates.push(Candidate::new("making the attributes of a request, eight", TIMES, 7, || {
        black_box(request()).names().count() as u64 - 1
    }));
    for (name, text, told) in gates() {
        let gate = Gate::new(Policy::from_toml(&text).expect("rules"), Zone::new(1 << 20))
            .expect("the store supports the policy");
        let request = request();
        // The first of those that are denied is not.
        passes(&gate, &request);
        candidates.push(Candidate::new(name, TIMES, told, move || u64::from(passes(&gate, &request))));
    }
    Table::measure(candidates).print(
        "an answer of Gate::admit on a zone, ten rules in all",
        "making the attributes, but in their own row; keys that are not in the cache",
    );
    Vec::new()
}

/// Whether a gate on a zone lets a request pass.
pub(super) fn passes(gate: &Gate, request: &Attributes<'_>) -> bool {
    black_box(gate).admit(black_box(request)).now().is_ok_and(|answer| answer.is_allowed())
}

/// A gate of ten rules, and a request to which two of them apply.
pub(super) fn two_rules() -> (Gate, Attributes<'static>) {
    let text = rules(2, &format!("key = ['ip']\nlimit = '{ROOMY}'"));
    (
        Gate::new(Policy::from_toml(&text).expect("rules"), Zone::new(1 << 20))
            .expect("the store supports the policy"),
        request(),
    )
}

/// What is asked: a name, the rules, and whether they let pass.
fn gates() -> Vec<(String, String, u64)> {
    let mut gates = vec![
        ("Gate, no rule applies".to_owned(), rules(0, ""), 1),
        ("Gate, one rule allows without counting".to_owned(), rules(1, "decision = 'allow'"), 1),
    ];
    for applying in [1, 2, 5] {
        let counting = format!("key = ['ip']\nlimit = '{ROOMY}'");
        gates.push((format!("Gate, {applying} rules apply"), rules(applying, &counting), 1));
    }
    let (shadow, denying) = (
        format!("key = ['ip']\nmode = 'shadow'\nlimit = '{ROOMY}'"),
        format!("key = ['ip']\nlimit = '{TIGHT}'"),
    );
    gates.push(("Gate, 1 shadow applies".to_owned(), rules(1, &shadow), 1));
    gates.push(("Gate, 1 rule denies".to_owned(), rules(1, &denying), 0));
    gates
}

/// Ten rules, of which so many apply.
fn rules(applying: u32, what: &str) -> String {
    let rule = |number: u32| {
        let plan = if number < applying { "free" } else { "other" };
        let what = if number < applying { what.to_owned() } else { format!("limit = '{ROOMY}'") };
        format!("[[rule]]\nname = 'rule{number}'\nwhen = {{ plan = '{plan}' }}\n{what}\n")
    };
    (0..10).map(rule).collect()
}

fn request() -> Attributes<'static> {
    Attributes::new()
        .set("ip", IP)
        .set("method", "GET")
        .set("host", "api.example.com")
        .set("path", "/api/v1/orders/4217")
        .set("tenant", "tenant00001")
        .set("user", "ana")
        .set("plan", "free")
        .set("header.x-api-key", "team00001-k3y")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_answer_as_their_rows_say() {
        for (name, text, told) in gates() {
            let gate = Gate::new(Policy::from_toml(&text).unwrap(), Zone::new(1 << 16))
                .expect("the store supports the policy");
            passes(&gate, &request());
            assert_eq!(u64::from(passes(&gate, &request())), told, "{name}");
        }
    }
}
