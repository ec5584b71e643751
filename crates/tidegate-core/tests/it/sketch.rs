//! Tests of the library as the design sketches it: the names and the shapes of the calls are a contract.

use std::net::IpAddr;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tidegate::Verdict::{Allowed, Denied, Impossible};
use tidegate::{DirectLimiter, Limit, Limiter, Map, Pacer, Permits, SECOND, Shaper, ask};

const API: Limit = Limit::per_second(10).burst(20);

/// Handles that can be cloned and shared, and have no type parameters to spell out.
#[expect(dead_code, reason = "it is there to be compiled")]
struct Held(DirectLimiter, Limiter, Map, Pacer, Shaper, Permits);

fn shared<T: Clone + Send + Sync + 'static>() {}

#[test]
fn handles_are_shared_by_cloning() {
    shared::<DirectLimiter>();
    shared::<Limiter>();
    shared::<Map>();
    shared::<Pacer>();
    shared::<Shaper>();
    shared::<Permits>();
}

async fn sketch() -> Result<(), Box<dyn std::error::Error>> {
    let odd: Limit = "1/1m30s burst 3".parse()?;
    let ip: IpAddr = "192.0.2.7".parse()?;

    let single = DirectLimiter::new(API);
    assert!(single.admit().is_allowed());
    let limiter = Limiter::new(API);
    match limiter.admit("ana").verdict() {
        Allowed { delay } => assert!(delay.is_zero()),
        Denied { retry_after } => panic!("{retry_after:?}"),
        Impossible => panic!("it fits"),
    }
    limiter.admit((ip, "login")).into_result()?;
    limiter.admit(ask("ana").cost(3)).into_result()?;

    let map = Map::new();
    let per_user = Limiter::on(&map, "user", API);
    let per_ip = Limiter::on(&map, "ip", odd);
    let both = tidegate::admit_all([per_user.ask("ana"), per_ip.ask(ask(ip).cost(2))]);
    assert!(both.is_allowed());

    assert!(limiter.peek("ana").remaining() > 0);
    limiter.refund("ana");
    limiter.charge(ask("ana").cost(500));
    limiter.reset("ana");
    limiter.set_limit(odd);

    let waited = limiter.acquire("ana").await?;
    assert!(waited.duration.is_zero());
    limiter.acquire("ana").max_wait(SECOND).await?;
    limiter.acquire("ana").max_wait(SECOND).blocking()?;

    let pacer = Pacer::builder(2).warm_up(4 * SECOND).build();
    pacer.acquire(1).await?;
    pacer.set_rate("10/s".parse()?)?;
    let shaper = Shaper::new(Limit::leaky_bucket(100, SECOND).queue(50));
    shaper.acquire().await?;
    let permits = Permits::builder(8).lease(30 * SECOND).build();
    let permit = permits.admit("ana")?;
    assert!(permit.release());
    Ok(())
}

#[test]
fn the_sketch_compiles_and_no_call_waits_in_it() {
    let mut sketch = pin!(sketch());
    match sketch.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result.unwrap(),
        Poll::Pending => panic!("a call waits"),
    }
}
