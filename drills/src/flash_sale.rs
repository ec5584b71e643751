//! The shop that never oversells, while everything under it fails.
//!
//! Crowds of ten thousand by every strategy on every database; shops and databases killed in the middle of a sale;
//! a Redis that forgets, lies, stops and dies; payments in the very moment in which the reservation ends; replies that
//! are lost. Buyers ask again with the same key, remember the replies, and in the end the books have to agree.

mod hints;
mod kills;
mod lane;
mod payments;
mod replies;
mod sales;

use harness::{Options, Report};
use tokio::runtime::Runtime;

use crate::Outcome;

/// What it consists of; each can be done alone.
pub(crate) const PARTS: &[&str] = &["sales", "kills", "hints", "payments", "replies"];

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome {
    let runtime = Runtime::new().map_err(|error| format!("no runtime: {error}"))?;
    for part in PARTS.iter().filter(|part| options.part.is_none_or(|chosen| chosen == **part)) {
        report.fact(format!("part {part}"));
        runtime.block_on(async {
            match *part {
                "sales" => sales::run(options, report).await,
                "kills" => kills::run(options, report).await,
                "hints" => hints::run(options, report).await,
                "payments" => payments::run(options, report).await,
                _ => replies::run(options, report).await,
            }
        })?;
    }
    Ok(())
}

/// Says what was found wrong, and claims that nothing was.
fn claim_no_findings(report: &mut Report, claim: &str, findings: &[String]) {
    findings.iter().take(20).for_each(|finding| report.fact(finding));
    report.claim(findings.is_empty(), claim, format!("{} findings", findings.len()));
}
