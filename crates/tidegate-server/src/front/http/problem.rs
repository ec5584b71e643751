//! An error response, as `application/problem+json` (RFC 9457).
//!
//! A detail has the shape "place: fault; remedy" and is written for the person who reads the log of the client.
//! Programs use the status and the type.

use std::borrow::Cow;

use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;

use super::reply::{PROBLEM, Reply};
use super::service::CLOSE;

/// An error response to a request.
#[derive(Debug)]
pub(super) struct Problem {
    /// The status code.
    pub(super) status: StatusCode,
    /// The explanation.
    detail: Cow<'static, str>,
    /// One more header field, such as `Retry-After` or `Allow`.
    field: Option<(HeaderName, HeaderValue)>,
    /// One more member of the object: its name, and its JSON.
    member: Option<Box<(&'static str, String)>>,
    /// True if the connection is closed after the response.
    is_last: bool,
}

impl Problem {
    /// Returns a problem. The detail names the place, the fault and the remedy.
    pub(super) fn new(status: StatusCode, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem { status, detail: detail.into(), field: None, member: None, is_last: false }
    }

    /// Returns a problem with status 400.
    pub(super) fn bad_request(detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Sets one more header field. A second call replaces the first.
    pub(super) fn with(self, name: HeaderName, value: &'static str) -> Problem {
        Problem { field: Some((name, HeaderValue::from_static(value))), ..self }
    }

    /// Sets one more member of the object. A second call replaces the first.
    pub(super) fn and(self, name: &'static str, value: &impl Serialize) -> Problem {
        let value = serde_json::to_string(value).expect("names are text, and numbers are numbers");
        Problem { member: Some(Box::new((name, value))), ..self }
    }

    /// Closes the connection after the response: the end of this request, and so the start of the next one, is unknown.
    pub(super) fn and_close(self) -> Problem {
        Problem { is_last: true, ..self }
    }

    /// Returns the reply, and adds the problem's header fields to `headers`.
    pub(super) fn reply(self, headers: &mut HeaderMap) -> Reply {
        if self.is_last {
            headers.insert(header::CONNECTION, CLOSE);
        }
        let body = self.json();
        headers.extend(self.field);
        Reply::new(self.status, PROBLEM, body)
    }

    /// Returns the bytes of a complete response, for a connection that hyper has given up.
    pub(super) fn whole_message(&self) -> Vec<u8> {
        let (status, json) = (self.status, self.json());
        let length = json.len();
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{json}"
        )
        .into_bytes()
    }

    /// Returns the body.
    fn json(&self) -> String {
        let mut json = String::new();
        let kind = tidegate_support::ProblemKind::Plain;
        tidegate_support::Problem { kind, status: self.status, detail: &self.detail }.put(&mut json);
        if let Some((name, value)) = self.member.as_deref() {
            json += &format!(r#","{name}":{value}"#);
        }
        json + "}"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::http::{TOO_MANY, TOO_MANY_DETAIL};

    #[test]
    fn a_whole_message_says_how_long_it_is() {
        let problem = Problem::bad_request("a \"quoted\"\nline");
        let message = String::from_utf8(problem.whole_message()).unwrap();
        let (head, body) = message.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["detail"], "a \"quoted\"\nline");
    }

    #[test]
    fn a_client_above_the_connection_limit_gets_a_problem_too() {
        let (head, body) = std::str::from_utf8(TOO_MANY).unwrap().split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{head}, {}", body.len());
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((&body["status"], &body["title"]), (&503.into(), &"Service Unavailable".into()));
        assert_eq!(body["detail"], TOO_MANY_DETAIL);
    }
}
