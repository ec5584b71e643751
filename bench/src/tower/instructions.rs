//! Instructions of one request, those that valgrind sees in [`counted`].

use std::pin::pin;
use std::process::ExitCode;
use std::task::{Context, Poll, Waker};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use harness::Goal;
use tower::Service;

use super::sides::{
    BARE, GOVERNOR, GOVERNOR_DENIES, GOVERNOR_PLAIN, PEER, SIDES, TIDEGATE, TIDEGATE_DENIES, TIDEGATE_PLAIN,
    side,
};
use crate::callgrind::mean;

const COUNTED: &str = "*tower::instructions::counted*";
const TIMES: u32 = 10_000;

/// Prints what each layer adds to a request.
pub(super) fn run() -> Result<Vec<Goal>, String> {
    println!("instructions of one request in the process, by callgrind, mean of {TIMES}");
    println!("{:<28} {:>12} {:>12}", "", "whole", "added");
    let mut means = Vec::new();
    for side in &SIDES {
        match mean(COUNTED, &["tower", "ask", side.name, &TIMES.to_string()], TIMES.into()) {
            Ok(Some(mean)) => means.push((side.name, mean)),
            Ok(None) => return Ok(Vec::new()),
            Err(problem) => return Err(format!("{}: {problem}", side.name)),
        }
    }
    let mean = |name| means.iter().find(|(of, _)| *of == name).map_or(f64::NAN, |(_, mean)| *mean);
    for (name, mean) in &means {
        println!("{name:<28} {mean:>12.0} {:>12.0}", mean - means[0].1);
    }
    println!();
    let added = |name| mean(name) - mean(BARE);
    Ok(vec![
        Goal::at_most("tower/plain", added(TIDEGATE_PLAIN) / added(GOVERNOR_PLAIN), 1.15, 1.0),
        Goal::at_most("tower/fields", added(TIDEGATE) / added(GOVERNOR), 0.75, 0.7),
        Goal::at_most("tower/denying", mean(TIDEGATE_DENIES) / mean(GOVERNOR_DENIES), 1.0, 0.7),
    ])
}

/// Asks a router so many times.
pub(super) fn ask(name: &str, times: &str) -> ExitCode {
    let (Some(side), Ok(times)) = (side(name), times.parse()) else {
        eprintln!("usage: tower ask SIDE TIMES");
        return ExitCode::from(2);
    };
    let mut router = (side.router)();
    // The first finds no known caller yet, and of those that are denied it is the only one that passes.
    counted(1, &mut router);
    let denied = counted(times, &mut router);
    println!("{name}: {denied} of {times} denied");
    ExitCode::from(u8::from(denied != if side.denies { times } else { 0 }))
}

/// What valgrind counts: how many were denied.
#[inline(never)]
fn counted(times: u32, router: &mut Router) -> u32 {
    (0..times).map(|_| u32::from(status(router) == StatusCode::TOO_MANY_REQUESTS)).sum()
}

fn status(router: &mut Router) -> StatusCode {
    let mut request = Request::new(Body::empty());
    request.extensions_mut().insert(ConnectInfo(PEER));
    let mut context = Context::from_waker(Waker::noop());
    match pin!(router.call(request)).poll(&mut context) {
        Poll::Ready(Ok(response)) => response.status(),
        Poll::Ready(Err(never)) => match never {},
        Poll::Pending => panic!("nothing here is waited for"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_answers_as_it_says() {
        for side in &SIDES {
            assert_eq!(ask(side.name, "3"), ExitCode::SUCCESS, "{}", side.name);
        }
        assert_eq!(ask("unknown", "3"), ExitCode::from(2));
    }
}
