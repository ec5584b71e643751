//! Permits that are held until a body has ended.

use super::*;

/// Returns a response with this body, from a layer that holds the permit until the body ends.
fn begun(places: &ConcurrencyLimiter, fields: &[(&str, &str)], frames: &Frames) -> Answer {
    let mut bench = Bench::new(&ConcurrencyLimitLayer::new(places.clone()).until_body_ends());
    let mut response = Response::builder();
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    let mut call = bench.call();
    bench.shared.answer_with(0, Ok(response.body(frames.clone()).unwrap()));
    answered(&mut call)
}

fn next(answer: &mut Answer) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
    Pin::new(answer.body_mut()).poll_frame(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_place_is_kept_until_the_body_has_ended() {
    let (places, frames) = (ConcurrencyLimiter::at_most(1), Frames::default());
    let mut answer = begun(&places, &[], &frames);
    assert_eq!(places.in_flight(), 1);
    frames.push(Ok(Piece::Data));
    assert!(matches!(next(&mut answer), Poll::Ready(Some(Ok(_)))));
    assert!(next(&mut answer).is_pending());
    assert_eq!(places.in_flight(), 1);
    frames.push(Ok(Piece::End));
    assert!(matches!(next(&mut answer), Poll::Ready(None)));
    assert_eq!(places.in_flight(), 0);
}

#[test]
fn or_until_it_was_dropped() {
    let places = ConcurrencyLimiter::at_most(1);
    let answer = begun(&places, &[], &Frames::default());
    assert_eq!(places.in_flight(), 1);
    drop(answer);
    assert_eq!(places.in_flight(), 0);
}

#[test]
fn or_until_it_failed() {
    let (places, frames) = (ConcurrencyLimiter::at_most(1), Frames::default());
    let mut answer = begun(&places, &[], &frames);
    frames.push(Err("broken"));
    assert!(matches!(next(&mut answer), Poll::Ready(Some(Err("broken")))));
    assert_eq!(places.in_flight(), 0);
}

#[test]
fn a_body_that_has_ended_before_it_began_keeps_nothing() {
    let places = ConcurrencyLimiter::at_most(1);
    let frames = Frames { says_end: true, ..Frames::default() };
    let _answer = begun(&places, &[], &frames);
    assert_eq!(places.in_flight(), 0);
}

/// Returns the limit after many gRPC responses with these pieces of a body, each read by `read`.
fn adapted(pieces: impl Fn(&Frames), fields: &[(&str, &str)], read: impl Fn(Answer)) -> u64 {
    let clock = Arc::new(ManualClock::new());
    let places = ConcurrencyLimiter::adaptive_builder(AdaptiveLimit::aimd(1..=1000).starting_at(100))
        .clock(clock.clone())
        .build();
    for _ in 0..20 {
        let answers: Vec<_> = (0..20)
            .map(|_| {
                let frames = Frames { says_end: true, ..Frames::default() };
                frames.push(Ok(Piece::Data));
                pieces(&frames);
                begun(&places, &[fields, &[("content-type", "application/grpc")]].concat(), &frames)
            })
            .collect();
        clock.advance(SECOND / 100);
        answers.into_iter().for_each(&read);
    }
    assert_eq!(places.in_flight(), 0);
    places.limit()
}

fn trailers(status: &'static str) -> impl Fn(&Frames) {
    move |frames| {
        let trailers = [("grpc-status".parse().unwrap(), status.parse().unwrap())];
        frames.push(Ok(Piece::Trailers(trailers.into_iter().collect())));
    }
}

fn whole(mut answer: Answer) {
    while matches!(next(&mut answer), Poll::Ready(Some(Ok(_)))) {}
}

#[test]
fn in_grpc_the_status_in_the_trailers_says_how_it_went() {
    assert!(adapted(trailers("0"), &[], whole) >= 100);
    assert!(adapted(trailers("14"), &[], whole) < 100);
    assert!(adapted(trailers("13"), &[], whole) >= 100);
    assert!(adapted(|_| (), &[], whole) >= 100);
}

#[test]
fn a_body_that_fails_is_a_failure_and_no_overload() {
    let overloaded = [("grpc-status", "14")];
    assert!(adapted(|_| (), &overloaded, whole) < 100);
    assert!(adapted(|frames| frames.push(Err("broken")), &overloaded, whole) >= 100);
}

#[test]
fn a_body_that_is_dropped_after_its_last_byte_has_ended() {
    let overloaded = |length| [("grpc-status", "14"), ("content-length", length)];
    let first_piece = |mut answer: Answer| drop(next(&mut answer));
    let and_more = |frames: &Frames| frames.push(Ok(Piece::Data));
    assert!(adapted(and_more, &overloaded("4"), first_piece) < 100, "these were all its bytes");
    assert!(adapted(and_more, &overloaded("8"), first_piece) >= 100, "half of it was not read");
}

#[test]
fn a_body_dropped_before_its_end_reports_no_outcome() {
    let overloaded = [("grpc-status", "14")];
    assert!(adapted(|_| (), &overloaded, drop) >= 100);
    assert!(adapted(trailers("14"), &[], |mut answer| drop(next(&mut answer))) >= 100);
}
