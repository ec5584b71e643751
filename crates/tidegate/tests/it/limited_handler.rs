//! An axum handler that is limited by the attribute `#[rate_limit]`.

use std::error::Error;

use axum::{
    Router,
    body::Body,
    extract::Path,
    http::{Request, Response, StatusCode},
    routing::get,
};
use http_body_util::BodyExt as _;
use tidegate::{rate_limit, tower::DeniedResponse};
use tower::ServiceExt as _;

#[rate_limit("2/h", key = user)]
async fn report(Path(user): Path<String>) -> Result<String, DeniedResponse> {
    Ok(format!("the report of {user}"))
}

async fn get_report(app: &Router, user: &str) -> Result<Response<Body>, Box<dyn Error>> {
    let request = Request::get(format!("/reports/{user}")).body(Body::empty())?;
    Ok(app.clone().oneshot(request).await?)
}

#[tokio::test]
async fn each_user_gets_two_reports_per_hour() -> Result<(), Box<dyn Error>> {
    let app = Router::new().route("/reports/{user}", get(report));

    for _ in 0..2 {
        let response = get_report(&app, "ana").await?;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.into_body().collect().await?.to_bytes(), "the report of ana");
    }
    let denied = get_report(&app, "ana").await?;
    assert_eq!(denied.status(), StatusCode::TOO_MANY_REQUESTS);
    let retry_after: u64 = denied.headers()["retry-after"].to_str()?.parse()?;
    assert!((1..=1800).contains(&retry_after), "a unit comes back every 30 minutes");
    assert_eq!(denied.headers()["content-type"], "application/problem+json");

    assert_eq!(get_report(&app, "bob").await?.status(), StatusCode::OK);
    Ok(())
}
