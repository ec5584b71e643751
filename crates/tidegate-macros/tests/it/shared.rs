//! Limiters that several functions share, and limiters that belong to a value.

use std::sync::{Arc, LazyLock};

use tidegate::{Denied, DirectLimiter, Limit, Limiter, Pacer, Permits, SECOND, Shaper};
use tidegate_macros::rate_limit;

static BY_USER: LazyLock<Limiter> = LazyLock::new(|| Limiter::new(Limit::per_hour(3)));
static TOGETHER: LazyLock<DirectLimiter> = LazyLock::new(|| DirectLimiter::new(Limit::per_hour(2)));

#[rate_limit(limiter = BY_USER, key = user)]
fn login(user: &str) -> Result<&str, Denied> {
    Ok(user)
}

#[rate_limit(limiter = BY_USER, key = user, cost = 2)]
fn reset_password(user: String) -> Result<String, Denied> {
    Ok(user)
}

#[rate_limit(limiter = TOGETHER)]
fn first() -> Result<(), Denied> {
    Ok(())
}

#[rate_limit(limiter = TOGETHER)]
async fn second() -> Result<(), Denied> {
    Ok(())
}

#[test]
fn functions_share_what_a_subject_may() {
    assert!(login("ana").is_ok());
    assert!(reset_password("ana".into()).is_ok());
    assert!(login("ana").is_err() && reset_password("ana".into()).is_err());
    assert!(login("bob").is_ok());
    assert!(!BY_USER.peek("ana").is_allowed(), "and so does a caller that asks by hand");
}

#[test]
fn functions_share_what_there_is_for_all() {
    assert!(first().is_ok());
    assert!(smol::block_on(second()).is_ok());
    assert!(first().is_err() && smol::block_on(second()).is_err());
}

struct Client {
    limiter: Limiter,
    upstream: Arc<DirectLimiter>,
    slots: Permits,
}

impl Client {
    #[rate_limit(limiter = self.limiter, key = user)]
    fn call(&self, user: &str) -> Result<usize, Denied> {
        Ok(user.len())
    }

    #[rate_limit(limiter = self.upstream)]
    fn pull(&mut self) -> Result<(), Denied> {
        Ok(())
    }

    #[rate_limit(limiter = self.slots, key = user)]
    fn hold(&self, user: &str, then: impl FnOnce(&Client) -> bool) -> Result<bool, Denied> {
        Ok(then(self))
    }
}

#[test]
fn a_value_may_bring_its_own_limiter() {
    let client = || Client {
        limiter: Limiter::new(Limit::per_hour(1)),
        upstream: Arc::new(DirectLimiter::new(Limit::per_hour(1))),
        slots: Permits::at_most(1),
    };
    let (mut one, mut other) = (client(), client());
    assert!(one.call("ana").is_ok() && one.call("ana").is_err() && other.call("ana").is_ok());
    assert!(one.pull().is_ok() && one.pull().is_err() && other.pull().is_ok());
}

#[test]
fn permits_are_held_until_the_function_ends() {
    let client = Client {
        limiter: Limiter::new(Limit::per_hour(1)),
        upstream: Arc::new(DirectLimiter::new(Limit::per_hour(1))),
        slots: Permits::at_most(1),
    };
    let inside = client.hold("ana", |client| client.hold("ana", |_| true).is_ok());
    assert_eq!(inside, Ok(false));
    assert_eq!(client.hold("ana", |client| client.hold("bob", |_| true).is_ok()), Ok(true));
    assert_eq!(client.slots.peek("ana").remaining(), 1);
}

#[test]
fn a_limiter_about_places_in_flight_gives_them_back() {
    static SLOTS: LazyLock<Limiter> = LazyLock::new(|| Limiter::new(Limit::concurrency(1, 60 * SECOND)));

    #[rate_limit(limiter = SLOTS, key = user)]
    fn enter(user: u8) -> Result<u64, Denied> {
        Ok(SLOTS.peek(user).remaining())
    }
    #[rate_limit(limiter = SLOTS, key = user, wait = "1m")]
    fn wait_for(user: u8) -> Result<u64, Denied> {
        Ok(SLOTS.peek(user).remaining())
    }

    assert_eq!((enter(1), wait_for(1), enter(1)), (Ok(0), Ok(0), Ok(0)));
    assert_eq!(SLOTS.peek(1_u8).remaining(), 1);
}

#[test]
fn pacers_and_shapers_hold_functions_too() {
    static PACER: LazyLock<Pacer> = LazyLock::new(|| Pacer::new("1/h pacer".parse().unwrap()).unwrap());
    static SHAPER: LazyLock<Shaper> =
        LazyLock::new(|| Shaper::new("1/h leaky-bucket queue 1".parse().unwrap()));

    #[rate_limit(limiter = PACER)]
    fn paced() -> Result<(), Denied> {
        Ok(())
    }
    #[rate_limit(limiter = SHAPER)]
    fn shaped() -> Result<(), Denied> {
        Ok(())
    }
    #[rate_limit(limiter = SHAPER, wait = "1s")]
    fn shaped_within_a_second() -> Result<(), Denied> {
        Ok(())
    }

    assert!(paced().is_ok() && paced().is_err());
    assert!(shaped().is_ok() && shaped().is_err());
    let refusal = shaped_within_a_second().expect_err("an hour is too long");
    assert!(!refusal.is_timed_out(), "known at once");
}
