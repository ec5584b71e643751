//! An axum service with a limit for each API key.

use std::error::Error;

use axum::{
    Router,
    body::Body,
    http::{Request, Response, StatusCode},
    routing::get,
};
use tidegate::{
    Limit,
    tower::{
        RateLimitLayer,
        key::{self, Extract as _},
    },
};
use tower::ServiceExt as _;

const FREE: Limit = Limit::per_hour(3);
const PRO: Limit = Limit::per_hour(5);

async fn hello() -> &'static str {
    "hello"
}

async fn call(app: &Router, api_key: Option<&str>) -> Result<Response<Body>, Box<dyn Error>> {
    let mut request = Request::get("/hello");
    if let Some(api_key) = api_key {
        request = request.header("x-api-key", api_key);
    }
    Ok(app.clone().oneshot(request.body(Body::empty())?).await?)
}

#[tokio::test]
async fn each_api_key_has_its_own_limit() -> Result<(), Box<dyn Error>> {
    let per_key = RateLimitLayer::new(FREE, key::header("x-api-key").or_deny()).named("api");
    let app = Router::new().route("/hello", get(hello)).layer(per_key);

    for _ in 0..3 {
        assert_eq!(call(&app, Some("ana")).await?.status(), StatusCode::OK);
    }
    let denied = call(&app, Some("ana")).await?;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    let retry_after: u64 = denied.headers()["retry-after"].to_str()?.parse()?;
    assert!((1..=1200).contains(&retry_after), "a unit comes back every 20 minutes");

    assert_eq!(call(&app, Some("bob")).await?.status(), StatusCode::OK);
    assert_eq!(call(&app, None).await?.status(), StatusCode::BAD_REQUEST);
    Ok(())
}

#[tokio::test]
async fn a_plan_has_another_limit() -> Result<(), Box<dyn Error>> {
    let per_plan =
        RateLimitLayer::each(key::header("x-api-key").or_deny(), |head| match head.header("x-api-key") {
            Some(api_key) if api_key.as_bytes().starts_with(b"pro-") => PRO,
            _ => FREE,
        });
    let app = Router::new().route("/hello", get(hello)).layer(per_plan);

    for (api_key, quota) in [("ana", 3), ("pro-bob", 5)] {
        for _ in 0..quota {
            assert_eq!(call(&app, Some(api_key)).await?.status(), StatusCode::OK);
        }
        let denied = call(&app, Some(api_key)).await?;
        assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS, "{api_key}");
    }
    Ok(())
}
