//! Finding the rules that apply, among few and among many.

use std::hint::black_box;

use tidegate::Zone;
use tidegate_rules::{Attributes, Gate, Policy};

use super::sets::{APPLYING, SETS, Set};
use super::table::{Candidate, Table};
use harness::Goal;

const COUNTS: [u32; 4] = [10, 100, 1000, 10_000];
/// The place in [`COUNTS`] about which there is a goal.
const A_THOUSAND: usize = 2;
const TIMES: u64 = 5_000;
/// How many requests come in turn.
const REQUESTS: u32 = 1024;

/// Prints a row for each set and number of rules.
pub(super) fn run() -> Vec<Goal> {
    println!(
        "rules that apply: always two, by the number of rules; ns CPU for a request, and \u{f7} that of 10 rules"
    );
    println!(
        "one: the same request again and again; in turn: {REQUESTS} requests, each for a rule at random"
    );
    println!("not measured: making the attributes, eight of them; reading the rules\n");
    println!(
        "{:<10} {:>6} {:^19} {:^19} {:^19}",
        "", "rules", "matching, one", "matching, in turn", "admit on a zone, one"
    );
    SETS.iter().map(compare).collect()
}

fn compare(set: &Set) -> Goal {
    let known: Vec<_> = COUNTS.iter().map(|count| Known::new(set, *count)).collect();
    let matching = Table::measure(known.iter().map(Known::matching_one).collect());
    let in_turn = Table::measure(known.iter().map(Known::matching_in_turn).collect());
    let admit = Table::measure(known.iter().map(Known::admit).collect());
    for (row, count) in COUNTS.iter().enumerate() {
        let figure = |table: &Table| format!("{:>10.1} {:>8.2}", table.time(row), table.ratio(row, 0));
        let (one, in_turn, admit) = (figure(&matching), figure(&in_turn), figure(&admit));
        println!("{:<10} {count:>6} {one} {in_turn} {admit}", if row == 0 { set.name } else { "" });
    }
    println!("           ({})", set.what);
    Goal::at_most(set.goal, matching.ratio(A_THOUSAND, 0), 3.0, 1.5)
}

/// A set of some size, and requests to it.
struct Known {
    policy: Policy,
    gate: Gate,
    one: Attributes<'static>,
    in_turn: Vec<Attributes<'static>>,
}

impl Known {
    fn new(set: &Set, count: u32) -> Known {
        let (policy, mut random) = (set.policy(count), fastrand::Rng::with_seed(1));
        Known {
            gate: Gate::new(policy.clone(), Zone::new(1 << 20)).expect("the store supports the policy"),
            policy,
            one: set.request(1, count),
            in_turn: (0..REQUESTS).map(|_| set.request(1 + random.u32(..count - 1), count)).collect(),
        }
    }

    fn matching_one(&self) -> Candidate<'_> {
        Candidate::new("matching", TIMES, APPLYING, || {
            black_box(&self.policy).matching(black_box(&self.one)).len() as u64
        })
    }

    fn matching_in_turn(&self) -> Candidate<'_> {
        let mut requests = self.in_turn.iter().cycle();
        Candidate::new("matching in turn", TIMES, APPLYING, move || {
            let request = requests.next().expect("they start again");
            black_box(&self.policy).matching(black_box(request)).len() as u64
        })
    }

    fn admit(&self) -> Candidate<'_> {
        Candidate::new("admit", TIMES, 1, || u64::from(super::admit::passes(&self.gate, &self.one)))
    }
}
