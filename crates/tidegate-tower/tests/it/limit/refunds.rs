//! Logins of which only failed ones count, with many of them in flight.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tidegate::{Limit, Limiter, ManualClock, Map, Zone};
use tidegate_rules::{Gate, Policy};
use tidegate_tower::{Answered, RateLimit, RateLimitLayer, Settle, key};
use tower::Service;
use tower_layer::Layer as _;

/// A login: correct and replied to on command, or wrong and replied to at once.
type Password = Option<Arc<AtomicBool>>;

#[derive(Clone)]
struct Logins;

struct Login {
    right: Password,
}

impl Future for Login {
    type Output = Result<Response<()>, Infallible>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let status = match &self.right {
            Some(is_answered) if !is_answered.load(Ordering::SeqCst) => return Poll::Pending,
            Some(_) => StatusCode::OK,
            None => StatusCode::UNAUTHORIZED,
        };
        let mut response = Response::new(());
        *response.status_mut() = status;
        Poll::Ready(Ok(response))
    }
}

impl Service<Request<Password>> for Logins {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Login;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Password>) -> Login {
        Login { right: request.into_body() }
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Answered<()>>, Infallible>>>>;

/// A site on which one user logs in.
struct Site {
    service: RateLimit<Logins>,
    clock: Arc<ManualClock>,
}

/// The forms of a layer that count the same.
const WAYS: [&str; 6] = ["zone", "map", "alone", "each", "rules in a zone", "rules in a map"];

impl Site {
    fn new(way: &str, text: &str) -> Site {
        let clock = Arc::new(ManualClock::new());
        clock.advance(Duration::from_secs(86_400));
        let limit: Limit = text.parse().unwrap();
        let (zone, map) = (Zone::with_clock(1 << 16, clock.clone()), Map::with_clock(clock.clone()));
        let user = || key::header("x-user");
        let policy = || {
            let text = format!("[[rule]]\nname = 'login'\nkey = ['user']\nlimit = '{text}'\n");
            Policy::from_toml(&text).unwrap()
        };
        let layer = match way {
            "zone" => RateLimitLayer::with(Limiter::on(&zone, "", limit), user()),
            "map" => RateLimitLayer::with(Limiter::on(&map, "", limit), user()),
            "alone" => RateLimitLayer::with(Limiter::on(&zone, "", limit), key::everyone()),
            "each" => RateLimitLayer::each_on(&zone, user(), move |_| limit),
            "rules in a zone" => {
                RateLimitLayer::rules(Gate::new(policy(), zone).expect("the store supports the policy"))
                    .attribute("user", user())
            }
            _ => RateLimitLayer::rules(Gate::new(policy(), map).expect("the store supports the policy"))
                .attribute("user", user()),
        };
        let layer = layer.after(|response| match response.status().is_success() {
            true => Settle::Refund,
            false => Settle::Keep,
        });
        Site { service: layer.layer(Logins), clock }
    }

    fn call(&mut self, right: Password) -> Answer {
        Box::pin(self.service.call(Request::builder().header("x-user", "mallory").body(right).unwrap()))
    }

    /// Sends a correct password whose response takes as long as the caller likes; `None` if it is denied.
    fn hold(&mut self) -> Option<(Arc<AtomicBool>, Answer)> {
        let is_answered = Arc::new(AtomicBool::new(false));
        let mut answer = self.call(Some(is_answered.clone()));
        poll(&mut answer).is_pending().then_some((is_answered, answer))
    }

    /// Returns the number of wrong passwords that pass at this instant.
    fn guesses(&mut self) -> usize {
        let mut passed = 0;
        loop {
            let mut answer = self.call(None);
            match poll(&mut answer) {
                Poll::Ready(response) if response.status() == StatusCode::UNAUTHORIZED => passed += 1,
                Poll::Ready(_) => return passed,
                Poll::Pending => panic!("a wrong password is answered at once"),
            }
        }
    }
}

fn poll(answer: &mut Answer) -> Poll<Response<Answered<()>>> {
    let poll = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    poll.map(|response| match response {
        Ok(response) => response,
        Err(never) => match never {},
    })
}

fn answer((is_answered, mut answer): (Arc<AtomicBool>, Answer)) {
    is_answered.store(true, Ordering::SeqCst);
    match poll(&mut answer) {
        Poll::Ready(response) => assert_eq!(response.status(), StatusCode::OK),
        Poll::Pending => panic!("its response is due"),
    }
}

#[test]
fn right_passwords_that_are_held_back_buy_no_wrong_ones() {
    for way in WAYS {
        for text in [
            "10/s burst 5",
            "10/s queue 4 delay-after all leaky-bucket",
            "5/500ms sliding-log",
            "5/500ms sliding-window",
            "5/500ms sliding-window mode estimate",
            "5/500ms fixed-window",
            "10/s pacer burst 500ms pay self",
        ] {
            let mut site = Site::new(way, text);
            let mut held = Vec::new();
            for _ in 0..50 {
                held.extend(site.hold());
                site.clock.advance(Duration::from_millis(101));
            }
            assert!(held.len() >= 20, "{text} ({way}): only {} are held", held.len());
            site.clock.advance(Duration::from_millis(1200));
            let mut wrong = site.guesses();
            for one in held {
                answer(one);
                wrong += site.guesses();
            }
            assert_eq!(wrong, 5, "{text} ({way}): wrong passwords at one instant");
        }
    }
}

#[test]
fn twenty_right_passwords_in_flight_cost_nothing_in_any_order() {
    let orders: [fn(usize) -> usize; 3] = [|at| at, |at| 19 - at, |at| at * 7 % 20];
    for way in WAYS {
        for text in [
            "20/h burst 20",
            "20/h queue 19 delay-after all leaky-bucket",
            "20/h sliding-log",
            "20/h sliding-window",
            "20/h sliding-window mode estimate",
            "20/h fixed-window",
            "20/h pacer burst 3600s pay self",
        ] {
            for order in orders {
                let mut site = Site::new(way, text);
                let mut held: Vec<_> = (0..20).map(|_| site.hold()).collect();
                assert!(held.iter().all(Option::is_some) && site.hold().is_none(), "{text} ({way})");
                for at in 0..20 {
                    answer(held[order(at)].take().expect("each is answered once"));
                }
                assert_eq!(site.guesses(), 20, "{text} ({way})");
            }
        }
    }
}

#[test]
fn a_login_that_waited_in_line_costs_nothing_when_it_is_right() {
    let clock = Arc::new(ManualClock::new());
    let limiter = Limiter::with_clock("1/s burst 1".parse().unwrap(), clock.clone());
    let layer = RateLimitLayer::with(limiter.clone(), key::header("x-user"))
        .wait(Duration::from_secs(5))
        .after(|response| if response.status().is_success() { Settle::Refund } else { Settle::Keep });
    let mut site = Site { service: layer.layer(Logins), clock };
    let first = site.hold().expect("it passes at once");
    let second = site.hold().expect("it waits");
    site.clock.advance(Duration::from_secs(1));
    answer(second);
    assert_eq!(
        limiter.peek("mallory").remaining(),
        1,
        "that of the first was repaid, that of the second came back"
    );
    answer(first);
    assert_eq!(limiter.peek("mallory").remaining(), 1);
}
