//! Corrections by a response: they change the take of its request, and nothing else.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tidegate_rules::Policy;
use tidegate_tower::{RateLimitLayer, Settle, key};
use tokio::sync::watch;
use tower::{Service, service_fn};
use tower_layer::Layer as _;

use super::super::{Counting, Task, now, of};
use super::{by, gate};

fn refunding(layer: RateLimitLayer) -> RateLimitLayer {
    layer.after(|response| match response.status() {
        StatusCode::NOT_FOUND => Settle::Refund,
        _ => Settle::Keep,
    })
}

/// Returns a service that replies "not found" on command.
pub(crate) fn lost(
    released: &watch::Receiver<bool>,
) -> impl Service<Request<()>, Response = Response<Full<Bytes>>, Error = Infallible, Future: Send> + Clone + use<>
{
    let released = released.clone();
    service_fn(move |_: Request<()>| {
        let mut released = released.clone();
        async move {
            released.wait_for(|is_released| *is_released).await.expect("the sender is alive");
            Ok(Response::builder().status(StatusCode::NOT_FOUND).body(Full::default()).expect("a response"))
        }
    })
}

/// Returns the number of fifty requests that pass.
fn passed(layer: &RateLimitLayer, request: impl Fn() -> Request<()>) -> usize {
    let mut service = Counting::default().behind(layer);
    (0..50).filter(|_| now(&mut service, request()).status().is_success()).count()
}

#[test]
fn other_rules_in_the_meantime_give_nothing_back_that_they_have_not_taken() {
    let nameless = || Request::builder().uri("/x").body(()).unwrap();
    let with_key = || Request::builder().uri("/x").header("x-key", "ana").body(()).unwrap();
    let (ana, by_user) = (|| of("ana"), "key = ['user']\n");
    for (asks, after, then) in [
        (&ana as &dyn Fn() -> Request<()>, by_user, &ana as &dyn Fn() -> Request<()>),
        (&with_key, "key = ['header.x-key']\n", &nameless),
        (&ana, "", &ana),
    ] {
        let (gate, _) = gate("[[rule]]\nname = 'before'\nkey = ['user']\nlimit = '1000/h'\n");
        let layer = refunding(RateLimitLayer::rules(gate.clone()).attribute("user", key::header("x-user")));
        let (release, released) = watch::channel(false);
        let mut slow = layer.layer(lost(&released));
        let mut waiting = Task::new((0..5).map(|_| slow.call(asks())));
        assert!(waiting.run().is_empty());
        let other = format!("[[rule]]\nname = 'after'\n{after}limit = '5/h'\n");
        gate.replace(Policy::from_toml(&other).unwrap()).unwrap();
        assert_eq!(passed(&layer, then), 5);
        release.send(true).unwrap();
        assert_eq!(waiting.run().len(), 5);
        assert_eq!(passed(&layer, then), 0, "{other}");
    }
}

#[test]
fn a_refund_returns_at_most_the_take_of_the_request() {
    let (gate, _) = gate("[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '5/h'\ncost = 2\n");
    let layer = by(&gate).after(|response| match response.status() {
        StatusCode::NOT_FOUND => Settle::RefundUnits(100),
        _ => Settle::Keep,
    });
    let mut service = Counting::default().behind(&layer);
    let mut ask = |status: &str| {
        let mut request = of("ana");
        request.headers_mut().insert("x-status", status.parse().unwrap());
        now(&mut service, request).status().as_u16()
    };
    assert_eq!([ask("200"), ask("404"), ask("404"), ask("200"), ask("404")], [200, 404, 404, 200, 429]);
}
