//! Instructions of one request, those that valgrind sees in [`counted`].

use std::hint::black_box;
use std::process::ExitCode;

use tidegate::Zone;
use tidegate_rules::Gate;

use super::admit::passes;
use super::sets::SETS;
use crate::callgrind::mean;

const COUNTED: &str = "*rules::instructions::counted*";
const TIMES: u32 = 10_000;
/// Finding the rules, and a whole answer of a gate on a zone.
const CALLS: [&str; 2] = ["matching", "admit"];

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
    let set = SETS.iter().find(|set| set.name == name);
    let (Some(set), Ok(rules), Ok(times)) = (set, rules.parse(), times.parse()) else {
        eprintln!("usage: rules ask {} SET RULES TIMES", CALLS.join("|"));
        return ExitCode::from(2);
    };
    let (policy, request) = (set.policy(rules), set.request(1, rules));
    let gate = Gate::new(policy.clone(), Zone::new(1 << 20));
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
