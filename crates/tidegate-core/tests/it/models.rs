//! Tests that the textbook forms decide like the one word (TAT), including late charges and refunds.

use conformance::model::{Funnel, TokenBucket};
use conformance::promise::Promise;
use conformance::random::Random;
use tidegate::{Adjustment, Ask, Cost, State, Timestamp};

#[test]
fn token_bucket_and_funnel_decide_as_the_one_word_does() {
    let seed = Random::seed_from_environment();
    for trace in 0..crate::traces(20_000) {
        let mut random = Random::new(seed ^ trace);
        let promise = Promise::random("token-bucket", &mut random);
        let most = promise.most_at_once();
        let limit = promise.limit();
        let (mut state, mut tokens, mut funnel) =
            (State::default(), TokenBucket::new(&promise), Funnel::new(&promise));
        let mut now = 0_u64;
        for _ in 0..200 {
            let units = random.sized(1, most + 1);
            let cost = Cost::of(units);
            let edge = limit.peek(&state, Timestamp::from_ticks(now), Ask::new(cost)).retry_after();
            now += match (edge, random.between(0, 9)) {
                (Some(wait), 0..4) if now < 1 << 62 => {
                    (wait.as_nanos() as u64 * 16).saturating_sub(random.between(0, 32))
                }
                (_, 4..7) => random.between(0, 3),
                _ => random.sized(0, 1 << 40),
            };
            let (at, instant, units) = (Timestamp::from_ticks(now), i128::from(now), i128::from(units));
            match random.between(0, 9) {
                0 => {
                    limit.adjust(&mut state, at, Adjustment::Charge(cost));
                    tokens.charge(instant, units);
                    funnel.charge(instant, units);
                }
                1 => {
                    limit.adjust(&mut state, at, Adjustment::Refund(cost));
                    tokens.refund(instant, units);
                    funnel.refund(instant, units);
                }
                _ => {
                    let word = limit.decide(&mut state, at, Ask::new(cost)).is_allowed();
                    let (tokens, funnel) = (tokens.take(instant, units), funnel.take(instant, units));
                    assert!(
                        word == tokens && word == funnel,
                        "trace {trace} of seed {seed}: {word} {tokens} {funnel}"
                    );
                }
            }
        }
    }
}
