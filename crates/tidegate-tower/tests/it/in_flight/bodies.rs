//! Permits that are held until a streamed response has ended.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::Context;

use http_body::Frame;
use http_body_util::BodyExt as _;
use tidegate::ConcurrencyLimiter;
use tidegate_tower::ConcurrencyLimitLayer;

use super::*;

/// A body of one piece that ends on command.
#[derive(Clone, Default)]
struct Slow {
    state: Arc<Mutex<(bool, bool, Option<Waker>)>>,
}

impl Slow {
    fn end(&self) {
        let mut state = self.state.lock().unwrap();
        state.1 = true;
        if let Some(waker) = state.2.take() {
            waker.wake();
        }
    }
}

impl http_body::Body for Slow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut state = self.state.lock().unwrap();
        if !state.0 {
            state.0 = true;
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"slow")))));
        }
        if state.1 {
            return Poll::Ready(None);
        }
        state.2 = Some(context.waker().clone());
        Poll::Pending
    }
}

async fn streaming(layer: ConcurrencyLimitLayer) -> (Server, Slow) {
    let slow = Slow::default();
    let body = slow.clone();
    let router = Router::new().fallback(move || async move { Response::new(Body::new(body)) });
    (Server::start(router.layer(layer)).await, slow)
}

#[tokio::test]
async fn a_place_is_kept_until_the_last_byte_has_left() {
    let places = ConcurrencyLimiter::at_most(1);
    let (server, slow) = streaming(ConcurrencyLimitLayer::new(places.clone()).until_body_ends()).await;
    let mut first = Stream::to(server.address).await;
    let mut answer = first.get("/").await;
    assert_eq!(answer.status(), 200);
    let piece = answer.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!((piece, places.in_flight()), (Bytes::from_static(b"slow"), 1));
    assert_eq!(server.connect().await.get("/").await.status(), 503);
    slow.end();
    assert!(answer.body_mut().frame().await.is_none());
    until(|| places.in_flight() == 0).await;
    assert_eq!(server.connect().await.get("/").await.status(), 200);
}

#[tokio::test]
async fn a_client_that_goes_away_in_the_middle_gives_the_place_back() {
    let places = ConcurrencyLimiter::at_most(1);
    let (server, _slow) = streaming(ConcurrencyLimitLayer::new(places.clone()).until_body_ends()).await;
    let mut client = Stream::to(server.address).await;
    let answer = client.get("/").await;
    assert_eq!(places.in_flight(), 1);
    drop((answer, client));
    until(|| places.in_flight() == 0).await;
}

#[tokio::test]
async fn by_default_a_permit_is_released_when_the_head_is_there() {
    let places = ConcurrencyLimiter::at_most(1);
    let (server, slow) = streaming(ConcurrencyLimitLayer::new(places.clone())).await;
    let mut client = Stream::to(server.address).await;
    let answer = client.get("/").await;
    assert_eq!((answer.status().as_u16(), places.in_flight()), (200, 0));
    slow.end();
}
