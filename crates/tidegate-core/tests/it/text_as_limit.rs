//! Limits as text wherever a limit is taken: the same limiter as by a limit, and errors that change nothing.

use tidegate::{
    Algorithm, DirectLimiter, DynamicLimiter, Limit, LimitBuilder, Limiter, Map, Pacer, SECOND, Shaper,
    SharedLimiter, Zone,
};

const HOURLY: Limit = Limit::per_hour(3);

#[test]
fn a_limit_its_text_and_its_numbers_make_the_same_limiter() {
    let numbers = LimitBuilder::new(Algorithm::TokenBucket, 3, 3600 * SECOND);
    let limiters = [Limiter::try_new(HOURLY), Limiter::try_new("3/h"), Limiter::try_new(numbers)];
    assert!(limiters.into_iter().all(|limiter| limiter.is_ok_and(|limiter| limiter.limit() == HOURLY)));
    let zone = Zone::new(1 << 16);
    let on = Limiter::try_on(&zone, "user", String::from("3/h")).expect("a limit");
    assert!(on.admit("ana").is_allowed());
    assert_eq!(Limiter::on(&zone, "user", HOURLY).peek("ana").remaining(), 2);
    assert_eq!(DirectLimiter::try_new("3/h").map(|limiter| limiter.limit()), Ok(HOURLY));
    assert_eq!(Shaper::try_new("3/h").map(|shaper| shaper.limit()), Ok(HOURLY));
    let shared = SharedLimiter::try_on(&Map::new(), "user", "3/h").expect("a limit");
    assert_eq!(shared.limit(), HOURLY);
    let dynamic = DynamicLimiter::on(&zone, "d");
    assert_eq!(*dynamic.try_prepare("3/h").expect("a limit").limit(), HOURLY);
}

#[test]
fn an_invalid_limit_leaves_the_old_one_in_force() {
    let expected = "0/h".parse::<Limit>().expect_err("it admits nothing");
    assert_eq!(Limiter::try_new("0/h").err(), Some(expected.clone()));
    assert!(Limiter::try_new(LimitBuilder::new(Algorithm::TokenBucket, 0, SECOND)).is_err());
    let (limiter, direct) = (Limiter::new(HOURLY), DirectLimiter::new(HOURLY));
    let (shaper, shared) = (Shaper::new(HOURLY), SharedLimiter::on(&Map::new(), "a", HOURLY));
    assert_eq!(limiter.try_set_limit("0/h"), Err(expected.clone()));
    assert_eq!(direct.try_set_limit("0/h"), Err(expected.clone()));
    assert_eq!(shaper.try_set_limit("0/h"), Err(expected.clone()));
    assert_eq!(shared.try_set_limit("0/h"), Err(expected));
    assert_eq!([limiter.limit(), direct.limit(), shaper.limit(), shared.limit()], [HOURLY; 4]);
    limiter.try_set_limit("9/h").expect("a limit");
    assert_eq!(limiter.limit(), Limit::per_hour(9));
    let pacer = Pacer::per_second(5);
    assert!(pacer.try_set_rate("0/s").is_err() && pacer.try_set_rate("7/s").is_ok());
    assert_eq!(pacer.limit(), Limit::pacer(7, SECOND));
}
