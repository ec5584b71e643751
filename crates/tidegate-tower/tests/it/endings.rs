//! Requests that end in every possible way, around a real server, over memory and over a real Redis. Afterwards no
//! permit is held, and each request has cost what its correction specifies.

use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use conformance::random::Random;
use http_body_util::BodyExt as _;
use testbed::{Flavour, Redis};
use tidegate::{FallbackStore, Zone};
use tidegate_redis::{Options, RedisStore};
use tidegate_rules::{Attributes, Gate, Policy};
use tidegate_tower::key::Extract as _;
use tidegate_tower::{RateLimitLayer, Settle, key};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::sleep;
use tower::{Layer, Service};

const PLACES: u64 = 64;
const UNITS: u64 = 10;
/// The charge of the service for a response, beside the one unit of each request.
const CHARGED: u64 = 2;
const RULES: &str = "
[[rule]]
name = 'places'
limit = '64/1h concurrency'
[[rule]]
name = 'units'
key = ['user']
limit = '10/365d sliding-log'
";
/// The number of requests for each correction and each store.
const REQUESTS: usize = 500;

/// The users whose requests reached the service, and the users whose responses were settled.
#[derive(Clone, Default)]
struct Seen {
    served: Arc<Mutex<HashSet<String>>>,
    settled: Arc<Mutex<HashSet<String>>>,
}

/// A service that records the users whose requests reach it.
#[derive(Clone)]
struct Noting<S>(S, Seen);

impl<S> Layer<S> for Seen {
    type Service = Noting<S>;

    fn layer(&self, inner: S) -> Noting<S> {
        Noting(inner, self.clone())
    }
}

impl<S: Service<Request>> Service<Request> for Noting<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> S::Future {
        self.1.served.lock().unwrap().insert(user(request.headers()));
        self.0.call(request)
    }
}

fn user(headers: &http::HeaderMap) -> String {
    headers.get("x-user").and_then(|user| user.to_str().ok()).unwrap_or_default().to_owned()
}

/// A body without an end, of which there is always more.
struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        context.waker().wake_by_ref();
        Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(&[b'x'; 1024])))))
    }
}

async fn serve(request: Request) -> Response {
    let response = Response::builder().header("x-user", user(request.headers()));
    let body = match request.uri().path() {
        "/fast" => Body::from("done"),
        "/never" => std::future::pending().await,
        "/panic" => panic!("this service has a bug"),
        "/stream" => Body::new(Endless),
        "/body" => {
            Body::from(request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default())
        }
        _ => {
            let response = response.status(101).header("connection", "upgrade").header("upgrade", "other");
            return response.body(Body::empty()).unwrap();
        }
    };
    response.body(body).unwrap()
}

/// A gate, and a server that may be stopped with requests in flight.
struct World {
    gate: Gate,
    seen: Seen,
    app: Router,
    server: Option<Runtime>,
    address: SocketAddr,
}

impl World {
    fn new(gate: Gate, abandoned: Settle) -> World {
        let seen = Seen::default();
        let settled = Arc::clone(&seen.settled);
        let layer = RateLimitLayer::rules(gate.clone())
            .peer(key::peer().or_skip())
            .attribute("user", key::header("x-user"))
            .after(move |response| {
                settled.lock().unwrap().insert(user(response.headers()));
                Settle::Charge(CHARGED)
            })
            .abandoned(abandoned);
        let app = Router::new().route("/{path}", any(serve)).layer(seen.clone()).layer(layer);
        let mut world = World { gate, seen, app, server: None, address: ([127, 0, 0, 1], 0).into() };
        world.start();
        world
    }

    /// Stops the server, which drops its requests, and starts another one.
    fn start(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown_background();
        }
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        let app = self.app.clone();
        runtime.spawn(async move { axum::serve(TcpListener::from_std(listener).unwrap(), app).await });
        self.server = Some(runtime);
    }

    /// Ends the request of a user in one of many ways.
    async fn end_one(&mut self, user: &str, random: &mut Random) {
        let paths = ["fast", "fast", "never", "panic", "stream", "body", "upgrade"];
        let path = random.pick(&paths);
        match random.between(0, 99) {
            0..35 => self.in_process(path, user, random).await,
            35..98 => self.over_tcp(path, user, random).await.unwrap_or_default(),
            _ => self.start(),
        }
    }

    /// Drops the request before it is polled, or after any number of polls.
    async fn in_process(&self, path: &str, user: &str, random: &mut Random) {
        let request = Request::builder().uri(format!("/{path}")).header("x-user", user);
        let request = request.body(Body::empty()).unwrap();
        let (mut service, polls) = (self.app.clone(), random.between(0, 11));
        let _ = std::future::poll_fn(|context| Service::<Request>::poll_ready(&mut service, context)).await;
        let mut response = Box::pin(service.call(request));
        for _ in 0..polls {
            // The panic is caught, as in a task.
            let poll = catch_unwind(AssertUnwindSafe(|| {
                response.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
            }));
            if poll.unwrap_or(true) {
                return;
            }
            sleep(Duration::from_micros(random.between(0, 399))).await;
        }
    }

    /// Sends a request or half of it, reads nothing, a part or all, and closes or resets the connection.
    async fn over_tcp(&self, path: &str, user: &str, random: &mut Random) -> std::io::Result<()> {
        let mut stream = TcpStream::connect(self.address).await?;
        let head = format!("POST /{path} HTTP/1.1\r\nhost: shop\r\nx-user: {user}\r\n");
        let rest = match random.between(0, 3) {
            0 => "connection: close\r\ncontent-length: 4\r\n\r\nbody",
            1 => "content-length: 4\r\n\r\nbo",
            2 => "connection: upgrade\r\nupgrade: other\r\n\r\n",
            _ => "content-length: 4\r\n\r\nbodyPOST /fast HTTP/1.1\r\n",
        };
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(rest.as_bytes()).await?;
        sleep(Duration::from_micros(random.between(0, 2999))).await;
        if random.percent(50) {
            let mut some = vec![0; random.between(1, 4096) as usize];
            // A client that gets no response disconnects.
            let _ = tokio::time::timeout(Duration::from_millis(random.between(0, 7)), stream.read(&mut some))
                .await;
        }
        if random.percent(50) {
            stream.set_zero_linger()?;
        }
        Ok(())
    }

    /// Returns the remaining quota of a rule for a user.
    async fn left(&self, rule: usize, user: &str) -> Option<u64> {
        let explained = self.gate.explain(&Attributes::new().set("user", user)).await.ok()?;
        Some(explained.rules[rule].decision?.remaining())
    }

    async fn all_places_are_free(&self) {
        eventually("all places are free", async || self.left(0, "unused").await == Some(PLACES)).await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A runtime must not block on its shutdown within another runtime.
        if let Some(server) = self.server.take() {
            server.shutdown_background();
        }
    }
}

/// A time longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Waits until the condition is true.
async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap_or_else(|_| panic!("{what}: not within {TIMEOUT:?}"));
}

fn memory() -> Gate {
    Gate::new(Policy::from_toml(RULES).unwrap(), Zone::new(1 << 20)).expect("the store supports the policy")
}

fn on_redis(redis: &Redis) -> Gate {
    let options = Options::new(redis.url().parse().unwrap()).deadline(Duration::from_secs(2));
    let store = RedisStore::open(options).unwrap_or_else(|error| panic!("{error}"));
    Gate::new(Policy::from_toml(RULES).unwrap(), FallbackStore::new(Arc::new(store), &Zone::new(1 << 24)))
        .expect("the store supports the policy")
}

/// Checks that every request costs what its correction specifies.
async fn requests_cost_what_is_settled(gate: Gate, abandoned: Settle) {
    let mut random = Random::new(Random::seed_from_environment());
    let mut world = World::new(gate, abandoned);
    for number in 0..REQUESTS {
        world.end_one(&format!("{abandoned:?}-{number}"), &mut random).await;
    }
    world.start();
    world.all_places_are_free().await;
    let (served, settled) =
        (world.seen.served.lock().unwrap().clone(), world.seen.settled.lock().unwrap().clone());
    println!("{abandoned:?}: {} of {REQUESTS} were served, {} had a response", served.len(), settled.len());
    assert!(settled.len() > REQUESTS / 20 && served.len() > settled.len() + REQUESTS / 20);
    for number in 0..REQUESTS {
        let user = format!("{abandoned:?}-{number}");
        let costs = match (served.contains(&user), settled.contains(&user), abandoned) {
            (_, true, _) | (true, false, Settle::Charge(_)) => 1 + CHARGED..=1 + CHARGED,
            (_, false, Settle::Refund) => 0..=0,
            // The take of a request that was dropped before it was served is kept.
            _ => 0..=1,
        };
        let what = format!("{user} costs {costs:?}");
        eventually(&what, async || {
            let left = world.left(1, &user).await;
            left.is_some_and(|left| costs.contains(&(UNITS - left)))
        })
        .await;
    }
}

#[tokio::test]
async fn in_memory_a_request_that_ends_in_any_way_is_settled_and_holds_no_place() {
    let gate = memory();
    requests_cost_what_is_settled(gate.clone(), Settle::Refund).await;
    requests_cost_what_is_settled(gate, Settle::Charge(CHARGED)).await;
}

#[tokio::test]
async fn on_redis_a_request_that_ends_in_any_way_is_settled_and_holds_no_place() {
    let redis = Redis::start(Flavour::Redis7);
    let gate = on_redis(&redis);
    requests_cost_what_is_settled(gate.clone(), Settle::Refund).await;
    requests_cost_what_is_settled(gate, Settle::Charge(CHARGED)).await;
}

#[tokio::test]
async fn requests_that_end_while_redis_is_lost_hold_no_place_there_and_none_here() {
    let redis = Redis::start(Flavour::Redis7);
    let mut random = Random::new(Random::seed_from_environment());
    let options = Options::new(redis.url().parse().unwrap()).deadline(Duration::from_millis(20));
    let store = RedisStore::open(options).unwrap_or_else(|error| panic!("{error}"));
    let store = FallbackStore::new(Arc::new(store), &Zone::new(1 << 24));
    let gate = Gate::new(Policy::from_toml(RULES).unwrap(), store).expect("the store supports the policy");
    let mut world = World::new(gate, Settle::Charge(CHARGED));
    for number in 0..REQUESTS {
        match random.between(0, 19) {
            0 => redis.stop(),
            1 | 2 => redis.resume(),
            _ => world.end_one(&format!("user-{number}"), &mut random).await,
        }
    }
    redis.resume();
    world.start();
    world.all_places_are_free().await;
    // Permits that this process granted while the store was down are released, too.
    redis.stop();
    let mut held = Vec::new();
    for number in 0..PLACES {
        let user = format!("local-{number}");
        let admission = world.gate.admit(&Attributes::new().set("user", user)).await.unwrap();
        assert!(admission.is_allowed(), "{number} of {PLACES} places of this process are free");
        held.extend(admission.permits().to_vec());
    }
    assert!(held.len() as u64 == PLACES && held.iter().all(|permit| permit.is_local));
    redis.resume();
}
