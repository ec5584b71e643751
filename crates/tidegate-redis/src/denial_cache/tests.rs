use super::*;
use tidegate_core::{Cost, State};

fn ask(cost: u64) -> Ask {
    Ask::new(Cost::of(cost))
}

/// Returns the decision about an ask after `taken` units were taken at the epoch.
fn refused(limit: &Limit, taken: u64, asked: Ask) -> Decision {
    let mut state = State::default();
    assert!(limit.decide(&mut state, Timestamp::EPOCH, ask(taken)).is_allowed());
    let decision = limit.decide(&mut state, Timestamp::EPOCH, asked);
    assert!(!decision.is_allowed());
    decision
}

/// Records a request to the server about a name.
fn asked_for(refusals: &DenialCache, name: &[u8], asked: (&Limit, Ask)) -> CacheEpoch {
    let (_, mut era) = refusals.certain(name, asked.0, asked.1, None);
    refusals.asks(&mut era);
    era
}

fn noted(limit: &str, taken: u64, asked: Ask) -> (DenialCache, Limit) {
    let limit: Limit = limit.parse().unwrap();
    let refusals = DenialCache::new();
    let era = asked_for(&refusals, b"k", (&limit, asked));
    refusals.note(b"k", (&limit, asked), (&refused(&limit, taken, asked), era), Lasting::AnyAsk);
    (refusals, limit)
}

#[test]
fn a_refused_key_is_refused_without_asking() {
    for limit in
        ["5/h", "5/h queue 4 leaky-bucket", "5/h fixed-window", "5/h sliding-log", "5/h sliding-window"]
    {
        let (refusals, limit) = noted(limit, 5, ask(1));
        let certain = refusals.certain(b"k", &limit, ask(1), None).0.unwrap_or_else(|| panic!("{limit}"));
        assert!(certain.retry_after().is_some() && certain.remaining() == 0, "{limit}: {certain:?}");
        assert!(refusals.certain(b"other", &limit, ask(1), None).0.is_none());
        assert!(
            refusals.certain(b"k", &Limit::per_hour(6), ask(1), None).0.is_none(),
            "another limit is another question"
        );
    }
}

#[test]
fn a_debt_tells_about_any_cost_and_max_wait() {
    let (refusals, limit) = noted("10/h", 7, ask(5));
    assert!(refusals.certain(b"k", &limit, ask(3), None).0.is_none(), "three are left");
    let four = refusals.certain(b"k", &limit, ask(4), None).0.expect("one is missing");
    let five = refusals.certain(b"k", &limit, ask(5), None).0.expect("two are missing");
    let difference = five.retry_after().unwrap() - four.retry_after().unwrap();
    assert!(difference.abs_diff(tidegate_core::HOUR / 10) < SECOND, "{difference:?}");
    assert_eq!(five.remaining(), 3);
    let patient = Ask::max_wait(ask(5), 2 * tidegate_core::HOUR);
    assert!(refusals.certain(b"k", &limit, patient, None).0.is_none(), "who waits may pass");
    assert!(
        refusals.certain(b"k", &limit, ask(11), None).0.is_none(),
        "what never passes is not a matter of time"
    );
}

#[test]
fn of_a_log_only_the_same_ask_is_certain() {
    let (refusals, limit) = noted("10/h sliding-log", 7, ask(5));
    assert!(refusals.certain(b"k", &limit, ask(5), None).0.is_some());
    assert!(refusals.certain(b"k", &limit, ask(6), None).0.is_none());
    assert!(refusals.certain(b"k", &limit, ask(4), None).0.is_none());
}

#[test]
fn a_fixed_window_has_no_more_room_than_it_had() {
    let (refusals, limit) = noted("10/h fixed-window", 7, ask(5));
    assert!(refusals.certain(b"k", &limit, ask(4), None).0.is_some());
    assert!(refusals.certain(b"k", &limit, ask(9), None).0.is_some());
    assert!(refusals.certain(b"k", &limit, ask(3), None).0.is_none());
    assert!(refusals.certain(b"k", &limit, ask(11), None).0.is_none());
}

#[test]
fn what_the_server_has_to_hear_is_never_remembered() {
    for limit in ["5/h sliding-log count-denied", "5/30s concurrency"] {
        let (refusals, limit) = noted(limit, 5, ask(1));
        assert!(refusals.certain(b"k", &limit, ask(1), None).0.is_none(), "{limit}");
    }
}

#[test]
fn what_was_asked_before_something_was_forgotten_is_not_remembered() {
    let limit = Limit::per_hour(5);
    let decision = refused(&limit, 5, ask(1));
    for forget in
        [|refusals: &DenialCache| refusals.forget(b"k"), |refusals: &DenialCache| refusals.forget_all()]
    {
        let refusals = DenialCache::new();
        let era = asked_for(&refusals, b"k", (&limit, ask(1)));
        forget(&refusals);
        refusals.note(b"k", (&limit, ask(1)), (&decision, era), Lasting::AnyAsk);
        assert!(refusals.certain(b"k", &limit, ask(1), None).0.is_none());
        let era = asked_for(&refusals, b"k", (&limit, ask(1)));
        refusals.note(b"k", (&limit, ask(1)), (&decision, era), Lasting::AnyAsk);
        assert!(refusals.certain(b"k", &limit, ask(1), None).0.is_some());
        forget(&refusals);
        assert!(refusals.certain(b"k", &limit, ask(1), None).0.is_none());
    }
}

#[test]
fn no_more_are_remembered_than_there_is_room_for() {
    let limit = Limit::per_hour(5);
    let decision = refused(&limit, 5, ask(1));
    let refusals = DenialCache::new();
    let count = SHARDS * MOST_PER_SHARD + 10_000;
    for nth in 0..count {
        let name = nth.to_be_bytes();
        let era = asked_for(&refusals, &name, (&limit, ask(1)));
        refusals.note(&name, (&limit, ask(1)), (&decision, era), Lasting::AnyAsk);
    }
    let known: usize = refusals.shards.iter().map(|shard| shard.lock().unwrap().known.len()).sum();
    assert!(known <= SHARDS * MOST_PER_SHARD && known > MOST_PER_SHARD, "{known}");
}

#[test]
fn across_slots_a_take_that_was_given_back_causes_no_long_denial() {
    let limit = Limit::per_hour(5);
    let decision = refused(&limit, 5, ask(1));
    let refusals = DenialCache::across_slots();
    let era = asked_for(&refusals, b"k", (&limit, ask(1)));
    refusals.note(b"k", (&limit, ask(1)), (&decision, era), Lasting::AnyAsk);
    let hash = refusals.hasher.hash_one(&b"k"[..]);
    let shard = refusals.shard(hash);
    let known = shard.known.get(&hash).expect("it is remembered");
    assert_eq!(known.until.since(known.asked_at), LONGEST_ACROSS_SLOTS);
}

#[test]
fn a_refusal_ends_after_a_while_and_with_the_memory_that_it_came_from() {
    let limit = Limit::per_hour(5);
    let decision = refused(&limit, 5, ask(1));
    let (refusals, seats) = (DenialCache::new(), [1, 2].map(|number| Some(MemoryId::for_tests(number, 0))));
    let is_known = |seat| refusals.certain(b"k", &limit, ask(1), seat).0.is_some();
    let (_, mut era) = refusals.certain(b"k", &limit, ask(1), seats[0]);
    refusals.asks(&mut era);
    refusals.note(b"k", (&limit, ask(1)), (&decision, era), Lasting::AnyAsk);
    let hash = refusals.hasher.hash_one(&b"k"[..]);
    let lasts = refusals.shard(hash).known.get(&hash).map(|known| known.until.since(known.asked_at));
    assert_eq!(lasts, Some(LONGEST));
    assert!(is_known(seats[0]));
    assert!(is_known(None), "while there is no connection nothing says that the state is gone");
    assert!(!is_known(seats[1]), "another connection");
    assert!(!is_known(seats[0]), "it is forgotten");
}

#[test]
fn an_answer_is_not_remembered_if_the_server_was_asked_again_since() {
    let limit = Limit::per_hour(5);
    let decision = refused(&limit, 5, ask(1));
    let refusals = DenialCache::new();
    let [first, second] = [(); 2].map(|()| asked_for(&refusals, b"k", (&limit, ask(1))));
    refusals.note(b"k", (&limit, ask(1)), (&decision, first), Lasting::AnyAsk);
    assert!(refusals.certain(b"k", &limit, ask(1), None).0.is_none(), "the second may have been allowed");
    refusals.note(b"k", (&limit, ask(1)), (&decision, second), Lasting::AnyAsk);
    assert!(refusals.certain(b"k", &limit, ask(1), None).0.is_some());
    asked_for(&refusals, b"k", (&limit, ask(9)));
    assert!(refusals.certain(b"k", &limit, ask(1), None).0.is_none(), "a smaller cost may be allowed by now");
}

/// Regression: concurrent requests about other keys kept a denial from being cached.
#[test]
fn questions_about_other_keys_do_not_matter() {
    let limit = Limit::per_hour(5);
    let (decision, refusals) = (refused(&limit, 5, ask(1)), DenialCache::new());
    let names: Vec<_> = (0..20_000_u32).map(u32::to_le_bytes).collect();
    let eras: Vec<_> = names.iter().map(|name| asked_for(&refusals, name, (&limit, ask(1)))).collect();
    for (name, era) in names.iter().zip(eras) {
        refusals.note(name, (&limit, ask(1)), (&decision, era), Lasting::AnyAsk);
    }
    let is_known = |name: &&[u8; 4]| refusals.certain(*name, &limit, ask(1), None).0.is_some();
    assert_eq!(names.iter().filter(is_known).count(), 20_000);
}

#[test]
fn long_names_are_not_remembered() {
    let limit = Limit::per_hour(5);
    let decision = refused(&limit, 5, ask(1));
    let refusals = DenialCache::new();
    for (length, is_remembered) in [(LONGEST_NAME, true), (LONGEST_NAME + 1, false)] {
        let name = vec![7; length];
        let era = asked_for(&refusals, &name, (&limit, ask(1)));
        refusals.note(&name, (&limit, ask(1)), (&decision, era), Lasting::AnyAsk);
        assert_eq!(refusals.certain(&name, &limit, ask(1), None).0.is_some(), is_remembered);
    }
}
