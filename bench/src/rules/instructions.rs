//! Instructions and allocations of one request, those that valgrind sees in [`counted`].

use std::hint::black_box;
use std::process::ExitCode;

use harness::Goal;
use tidegate::Zone;
use tidegate_rules::Gate;

use super::admit::{passes, two_rules};
use super::sets::SETS;
use crate::callgrind::{allocations, mean};

const COUNTED: &str = "*rules::instructions::counted*";
const TIMES: u32 = 10_000;
/// Finding the rules, and a whole answer of a gate on a zone.
const CALLS: [&str; 2] = ["matching", "admit"];

/// The name of the request that has a goal: eight attributes, and two of ten rules apply.
const JUDGED: &str = "two rules";
/// The instructions of that admit before there was one path per decision, with this toolchain on x86-64.
const INSTRUCTIONS_BEFORE: f64 = 17_973.0;

/// Counts an admit to which two of ten rules apply.
pub(super) fn run() -> Result<Vec<Goal>, String> {
    let [none, all] = ["0".to_owned(), TIMES.to_string()];
    let Some(instructions) = mean(COUNTED, &admit(&all), TIMES.into())? else { return Ok(Vec::new()) };
    // The program allocates before the first of them, too.
    let allocations = (allocations(&admit(&all))? - allocations(&admit(&none))?) as f64 / f64::from(TIMES);
    println!(
        "an admit to which two of ten rules apply: {instructions:.0} instructions, {allocations:.2} allocations\n"
    );
    Ok(vec![
        Goal::at_most("rules/admit-instructions", instructions / INSTRUCTIONS_BEFORE, 0.45, 0.45),
        Goal::at_most("rules/admit-allocations", allocations, 2.0, 1.0),
    ])
}

/// The arguments by which this program asks so many times.
fn admit(times: &str) -> [&str; 6] {
    ["rules", "ask", "admit", JUDGED, "10", times]
}

/// Prints what valgrind counts for all sets.
pub(super) fn compare() -> ExitCode {
    println!("instructions of one request to which two rules apply, by callgrind, mean of {TIMES}");
    println!("not counted: what an instruction waits for");
    for call in CALLS {
        println!("\n{call:<10} {:>10} {:>12} {:>8}", "10 rules", "1,000 rules", "\u{f7}");
        for set in &SETS {
            let count = |rules: &str| {
                mean(COUNTED, &["rules", "ask", call, set.name, rules, &TIMES.to_string()], TIMES.into())
            };
            match count("10").and_then(|few| Ok((few, count("1000")?))) {
                Ok((Some(few), Some(many))) => {
                    println!("{:<10} {few:>10.0} {many:>12.0} {:>8.2}", set.name, many / few);
                }
                Ok(_) => return ExitCode::SUCCESS,
                Err(problem) => {
                    println!("{:<10} {problem}", set.name);
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}

/// Asks a set of so many rules so many times.
pub(super) fn ask([call, name, rules, times]: [&str; 4]) -> ExitCode {
    if let ("admit", JUDGED, Ok(times)) = (call, name, times.parse()) {
        let (gate, request) = two_rules();
        println!("{JUDGED}: {} in {times} requests", counted(times, || usize::from(passes(&gate, &request))));
        return ExitCode::SUCCESS;
    }
    let set = SETS.iter().find(|set| set.name == name);
    let (Some(set), Ok(rules), Ok(times)) = (set, rules.parse(), times.parse()) else {
        eprintln!("usage: rules ask {} SET RULES TIMES", CALLS.join("|"));
        return ExitCode::from(2);
    };
    let (policy, request) = (set.policy(rules), set.request(1, rules));
    let gate = Gate::new(policy.clone(), Zone::new(1 << 20)).expect("the store supports the policy");
    let told = match call {
        "matching" => counted(times, || black_box(&policy).matching(black_box(&request)).len()),
        _ => counted(times, || usize::from(passes(&gate, &request))),
    };
    println!("{call} {name}: {told} in {times} requests");
    ExitCode::SUCCESS
}

/// What valgrind counts.
#[inline(never)]
fn counted(times: u32, mut once: impl FnMut() -> usize) -> usize {
    (0..times).map(|_| once()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_can_be_asked_and_nothing_else() {
        for (set, call) in SETS.iter().flat_map(|set| CALLS.map(|call| (set, call))) {
            assert_eq!(ask([call, set.name, "10", "3"]), ExitCode::SUCCESS, "{call} {}", set.name);
        }
        assert_eq!(ask(["matching", "nothing", "10", "3"]), ExitCode::from(2));
    }
}
