use std::num::NonZeroU64;

use super::*;
use crate::algorithm::{LeakyBucket, PacerParams, TokenBucket};
use crate::ask::Ask;
use crate::limit::{DelayAfter, Pay};

const INTERVAL: NonZeroU64 = NonZeroU64::new(100).unwrap();

fn at(ticks: u64) -> Timestamp {
    Timestamp::from_ticks(ticks)
}

fn queued((begin, end): (u64, u64), last_end: u64) -> Claim {
    Claim::Queued { own: Interval { begin: at(begin), end: at(end) }, last_end: at(last_end), seen: at(0) }
}

/// Returns the refund of one unit and true if it is whole, or `None` if the claim is invalid.
fn back(
    limit: &impl DebtQueue<State = Timestamp>,
    clear_at: u64,
    now: u64,
    claim: Claim,
) -> Option<(u64, bool)> {
    let mut state = at(clear_at);
    let taken_off = limit.take_off(&mut state, at(now), &claim, Cost::ONE)?;
    assert_eq!(state, at(clear_at).saturating_sub(taken_off.back));
    Some((taken_off.back.get(), taken_off.adjusted == Adjusted::Whole))
}

fn bucket() -> TokenBucket {
    TokenBucket::new(INTERVAL, 5, 5).unwrap()
}

#[test]
fn the_part_of_an_interval_after_now_comes_back() {
    let own = queued((100, 200), 300);
    assert_eq!(back(&bucket(), 400, 0, own), Some((100, true)), "all of it is owed");
    assert_eq!(back(&bucket(), 400, 100, own), Some((100, true)));
    assert_eq!(back(&bucket(), 400, 150, own), Some((50, false)), "half of it is repaid");
    assert_eq!(back(&bucket(), 400, 200, own), Some((0, false)), "all of it is repaid");
    assert_eq!(back(&bucket(), 400, 350, own), Some((0, false)));
}

#[test]
fn a_partial_refund_returns_the_end_of_the_interval() {
    let own = queued((100, 400), 400);
    assert_eq!(back(&bucket(), 400, 0, own), Some((100, true)));
    assert_eq!(back(&bucket(), 400, 290, own), Some((100, true)), "time repays the other units first");
    assert_eq!(back(&bucket(), 400, 350, own), Some((50, false)));
}

#[test]
fn a_claim_is_void_if_the_debt_is_smaller_than_claimed_or_the_clock_stepped_back() {
    assert_eq!(back(&bucket(), 299, 0, queued((100, 200), 300)), None);
    let later = OUT_OF_ORDER.get() + 1;
    let own = Interval { begin: at(0), end: at(later + 200) };
    let seen_at = |seen| Claim::Queued { own, last_end: own.end, seen: at(seen) };
    assert_eq!(back(&bucket(), later + 200, 0, seen_at(later)), None);
    assert!(back(&bucket(), later + 200, 1, seen_at(later)).is_some(), "that is only out of order");
    assert_eq!(back(&bucket(), 400, 0, Claim::Unordered { at: at(later), paid: Ticks::new(100) }), None);
}

#[test]
fn a_reading_out_of_order_finds_no_more_than_the_one_before_it() {
    let own = Interval { begin: at(100), end: at(200) };
    let claim = Claim::Queued { own, last_end: at(200), seen: at(170) };
    assert_eq!(back(&bucket(), 200, 110, claim), Some((30, false)));
}

#[test]
fn while_any_request_may_wait_only_the_last_take_comes_back() {
    let (first, last) = (queued((0, 100), 600), queued((500, 600), 600));
    assert_eq!(back(&bucket(), 600, 0, first), Some((0, false)), "a debt of six units in a burst of five");
    assert_eq!(back(&bucket(), 600, 0, last), Some((100, true)));
    assert_eq!(back(&bucket(), 700, 0, last), Some((0, false)), "one that is not tracked came later");
    assert_eq!(back(&bucket(), 500, 0, queued((0, 100), 500)), Some((100, true)));

    let leaky = LeakyBucket::new(INTERVAL, 5, DelayAfter::Units(2), None).unwrap();
    assert_eq!(back(&leaky, 300, 0, queued((0, 100), 300)), Some((0, false)));
    assert_eq!(back(&leaky, 300, 0, queued((200, 300), 300)), Some((100, true)));
    assert_eq!(back(&leaky, 200, 0, queued((0, 100), 200)), Some((100, true)));
}

#[test]
fn a_request_that_still_waits_gets_no_partial_refund() {
    let half = queued((400, 600), 600);
    assert_eq!(
        back(&bucket(), 600, 0, half),
        Some((0, false)),
        "it acts with what is left of it, and the next one"
    );
    let mut state = at(600);
    let whole = bucket().take_off(&mut state, at(0), &half, Cost::of(2));
    assert_eq!(whole.map(|it| it.back), Some(Ticks::new(200)));
    let queue = LeakyBucket::new(INTERVAL, 5, DelayAfter::Units(0), None).unwrap();
    assert_eq!(back(&queue, 200, 0, queued((0, 200), 200)), Some((100, true)), "it has left the queue");
}

#[test]
fn under_a_shared_state_the_price_less_the_elapsed_time_comes_back() {
    let taken = |paid| Claim::Unordered { at: at(1000), paid: Ticks::new(paid) };
    assert_eq!(back(&bucket(), 1500, 1000, taken(100)), Some((100, true)));
    assert_eq!(back(&bucket(), 1500, 1030, taken(100)), Some((70, false)));
    assert_eq!(back(&bucket(), 1500, 1100, taken(100)), Some((0, false)));
    assert_eq!(back(&bucket(), 1500, 1200, taken(300)), Some((100, true)), "of three, two may be repaid");
    assert_eq!(back(&bucket(), 1060, 1030, taken(100)), Some((30, false)), "no more than is owed");
    assert_eq!(back(&bucket(), 1600, 1000, taken(100)), Some((0, false)), "a request may wait");
}

/// Returns the refund of the first unit of a pacer with five saved units that granted so many at once, after a while.
fn back_of_pacer(pay: Pay, grants: u64, after: u64) -> (u64, bool) {
    let pacer = PacerParams::steady(Some(INTERVAL), Ticks::new(500), pay).unwrap();
    let (mut state, now) = (Default::default(), 1 << 30);
    let ask = Ask { cost: Cost::of(grants), max_wait: Ticks::MAX };
    assert!(pacer.decide(&mut state, at(now), ask).is_allowed());
    let claim = queued((now, now + 100), now + grants * 100);
    let before = pacer.clear_at(&state);
    assert_eq!(before, at(now + grants * 100), "its debt ends when it has rested");
    let taken_off =
        pacer.take_off(&mut state, at(now + after), &claim, Cost::ONE).expect("it owes that much");
    assert_eq!(pacer.clear_at(&state), before.saturating_sub(taken_off.back));
    (taken_off.back.get(), taken_off.adjusted == Adjusted::Whole)
}

#[test]
fn a_steady_pacer_refunds_only_the_part_that_is_not_saved_again() {
    assert_eq!(back_of_pacer(Pay::Next, 3, 0), (100, true));
    assert_eq!(back_of_pacer(Pay::Next, 3, 40), (60, false), "so much is saved again");
    assert_eq!(back_of_pacer(Pay::Next, 6, 0), (100, true), "the last one pays for its own unit later");
    assert_eq!(back_of_pacer(Pay::Next, 7, 0), (0, false), "the next one waits for more than a unit");
    assert_eq!(back_of_pacer(Pay::Own, 5, 0), (100, true));
    assert_eq!(back_of_pacer(Pay::Own, 6, 0), (0, false), "it waits for what it costs itself");
}

#[test]
fn a_warming_pacer_gives_back_the_last_grant_only() {
    let pacer = PacerParams::warming_up(Some(INTERVAL), Ticks::new(800), 3, Pay::Next).unwrap();
    let mut state = Default::default();
    let take = |state: &mut _| pacer.decide(state, at(0), Ask { cost: Cost::ONE, max_wait: Ticks::MAX });
    assert!(take(&mut state).is_allowed());
    let (one, first_end) = (state, pacer.clear_at(&state));
    assert!(take(&mut state).is_allowed());
    let last_end = pacer.clear_at(&state);
    let claim = |end: Timestamp| queued((end.ticks(), end.ticks()), last_end.ticks());
    let mut refund = |end| pacer.take_off(&mut state, at(0), &claim(end), Cost::ONE).map(|it| it.adjusted);
    assert_eq!(refund(first_end), Some(Adjusted::Capped));
    assert_eq!(refund(last_end), Some(Adjusted::Whole));
    assert_eq!(refund(last_end), None, "less is owed by now");
    assert_eq!(state, one);
}
