//! Why a request was refused, as `application/problem+json` (RFC 9457).
//!
//! Nothing here depends on the moment, so the bodies of a limit are made once: when to try again stands in
//! `Retry-After`.

use bytes::Bytes;

/// The body of one who has to wait for this limit.
pub(super) fn exceeded(name: &str) -> Bytes {
    quota(
        name,
        &format!("Refused by \\\"{name}\\\"; Retry-After says in how many seconds the same request passes."),
    )
}

/// The body of one whose request weighs more than this limit can hold.
pub(super) fn too_much(name: &str, most: u64) -> Bytes {
    quota(name, &format!("This request can never pass: \\\"{name}\\\" holds at most {most}; ask for less."))
}

fn quota(name: &str, detail: &str) -> Bytes {
    let body = format!(
        "{{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\
         \"title\":\"Quota exceeded\",\"status\":429,\"detail\":\"{detail}\",\"violated-policies\":[\"{name}\"]}}"
    );
    body.into()
}

/// The body of one for whom there is no place now.
pub(super) const REDUCED_CAPACITY: &str = concat!(
    r#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","#,
    r#""title":"Temporarily reduced capacity","status":503,"#,
    r#""detail":"There is no room for this request now; try again later."}"#,
);

/// The body of one whose key the store has no room for.
pub(super) const STORE_FULL: &str = concat!(
    r#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","#,
    r#""title":"Temporarily reduced capacity","status":429,"#,
    r#""detail":"The store has no room for another key; try again later."}"#,
);

/// The body of one about whom nobody could decide.
pub(super) const UNDECIDED: &str = concat!(
    r#"{"type":"about:blank","title":"Service Unavailable","status":503,"#,
    r#""detail":"Nobody could decide about this request; try again later."}"#,
);

/// The body of one who is never let in.
pub(super) const FORBIDDEN: &str = concat!(
    r#"{"type":"about:blank","title":"Forbidden","status":403,"#,
    r#""detail":"A rule refuses this request, however rare it is."}"#,
);

/// The body of one about whom the program does not know who is connected.
pub(super) const NO_PEER: &str = concat!(
    r#"{"type":"about:blank","title":"Internal Server Error","status":500,"#,
    r#""detail":"Requests are counted by address here, and the server does not note who is connected. "#,
    r#"Say where it does by key::peer_in; with axum serve into_make_service_with_connect_info."}"#,
);

/// The body of one who does not say who it is.
pub(super) const UNNAMED: &str = concat!(
    r#"{"type":"about:blank","title":"Bad Request","status":400,"#,
    r#""detail":"The request lacks what it is counted by, or has several values of it; send it once."}"#,
);
