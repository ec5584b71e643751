//! Denials of gRPC calls: a trailers-only response, whose trailers are the header fields.
//!
//! `grpc-status-details-bin` is a `google.rpc.Status` with a `RetryInfo`, which contains the time to the next try.
//! `grpc-retry-pushback-ms` contains the same for clients that retry automatically, or tells them not to retry.
//!
//! Clients of gRPC read the status from trailers. A response without messages may send its trailers as header fields,
//! so a denial needs neither a body nor a protocol-buffers library: the few messages are encoded here by hand.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use tidegate_support::ceil_ms;

use super::Retry;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

const RETRY_INFO: &[u8] = b"type.googleapis.com/google.rpc.RetryInfo";
/// The wire type of length-delimited bytes in protobuf.
const BYTES: u8 = 2;
/// The wire type of a varint in protobuf.
const NUMBER: u8 = 0;

/// A gRPC status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    InvalidArgument = 3,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    Internal = 13,
    Unavailable = 14,
}

/// Returns the response with this code, this message and the time to the next try.
pub(super) fn answer(code: Code, message: &str, retry: Retry, kind: Option<&HeaderValue>) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    let kind = kind.cloned().unwrap_or(HeaderValue::from_static("application/grpc"));
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(STATUS, HeaderValue::from(code as u64));
    headers.insert(MESSAGE, value(&percent_encoded(message.as_bytes())));
    put_retry(headers, code, message, retry);
    response
}

/// Writes the time to the next try in both forms, or forbids a retry by a negative pushback.
fn put_retry(headers: &mut HeaderMap, code: Code, message: &str, retry: Retry) {
    match retry {
        Retry::After(wait) => {
            let details = status(code as u64, message, &[(RETRY_INFO, &retry_info(wait))]);
            headers.insert(DETAILS, value(&base64(&details)));
            headers.insert(PUSHBACK, ceil_ms(wait).into());
        }
        Retry::Never => {
            headers.insert(PUSHBACK, HeaderValue::from_static("-1"));
        }
        Retry::Unknown => {}
    }
}

/// Returns a header field value of plain ASCII.
fn value(bytes: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(bytes).expect("plain ASCII may be in a header field")
}

/// Encodes `google.rpc.Status { code = 1, message = 2, details = 3 }`, each detail as `google.protobuf.Any`.
fn status(code: u64, message: &str, details: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut status = Vec::new();
    put_number(&mut status, 1, code);
    put_bytes(&mut status, 2, message.as_bytes());
    for (kind, detail) in details {
        let mut any = Vec::new();
        put_bytes(&mut any, 1, kind);
        put_bytes(&mut any, 2, detail);
        put_bytes(&mut status, 3, &any);
    }
    status
}

/// Encodes `google.rpc.RetryInfo { retry_delay = 1 }`, a `google.protobuf.Duration { seconds = 1, nanos = 2 }`.
fn retry_info(wait: Duration) -> Vec<u8> {
    let (mut duration, mut info) = (Vec::new(), Vec::new());
    put_number(&mut duration, 1, wait.as_secs());
    put_number(&mut duration, 2, wait.subsec_nanos().into());
    put_bytes(&mut info, 1, &duration);
    info
}

/// Appends a number. Zero is omitted, as in protobuf.
fn put_number(out: &mut Vec<u8>, field: u8, number: u64) {
    if number > 0 {
        out.push(field << 3 | NUMBER);
        put_varint(out, number);
    }
}

/// Appends a length-delimited field: text, bytes, or an embedded message.
fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a number in groups of seven bits, the lowest first; all but the last group have the high bit set.
fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Encodes in base64 without padding, as gRPC does.
fn base64(bytes: &[u8]) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let letters = [18, 12, 6, 0].map(|shift| LETTERS[(bits >> shift & 0x3f) as usize]);
        text.extend_from_slice(&letters[..=chunk.len()]);
    }
    text
}

/// Encodes bytes that are not printable ASCII, and the percent sign, as `%41`.
fn percent_encoded(text: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b' '..=b'~' if *byte != b'%' => encoded.push(*byte),
            byte => {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 0xf));
                encoded.extend_from_slice(&[b'%', DIGITS[high], DIGITS[low]]);
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_published_examples() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), text.as_bytes());
        }
        assert_eq!(base64(&[0xfb, 0xff]), b"+/8");
    }

    #[test]
    fn a_message_is_plain_ascii() {
        assert_eq!(percent_encoded("50% \u{e4}\n".as_bytes()), b"50%25 %C3%A4%0A");
    }
}
