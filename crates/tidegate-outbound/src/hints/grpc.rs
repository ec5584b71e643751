//! The hold that a gRPC server asks for, in a response without messages.
//!
//! It is in `grpc-retry-pushback-ms`, or in a `google.rpc.RetryInfo` among the details of the status. The details are
//! protocol buffers, of which only the fields on the path to it are read.
//!
//! Reading three fields needs no library of protocol buffers. Unknown fields are skipped; a message that ends early or
//! has an invalid tag is ignored as a whole.

use std::time::Duration;

use super::base64;
use super::when::digits;
use tidegate_tower::ResponseHead;

/// The statuses of overload: `RESOURCE_EXHAUSTED` and `UNAVAILABLE`. Others ask for a retry of a single call.
const OF_LOAD: [u32; 2] = [8, 14];

const RETRY_INFO: &[u8] = b"google.rpc.RetryInfo";

/// Returns the longer of both, if the response is a denial for lack of capacity.
pub(super) fn hold(head: ResponseHead<'_>) -> Option<Duration> {
    if !head.is_grpc() || !OF_LOAD.contains(&head.grpc_status()?) {
        return None;
    }
    // A negative value asks not to retry this call, and does not apply to others.
    let pushback = head.header("grpc-retry-pushback-ms").and_then(|text| digits(text.as_bytes()));
    let details = head.header("grpc-status-details-bin").and_then(|text| base64::decode(text.as_bytes()));
    let delay = details.and_then(|details| retry_delay(&details));
    pushback.map(Duration::from_millis).max(delay)
}

/// Returns the delay of the first `RetryInfo` among the details of a `google.rpc.Status`.
fn retry_delay(status: &[u8]) -> Option<Duration> {
    for field in (Fields { bytes: status }) {
        let (3, Value::Bytes(detail)) = field? else { continue };
        if let Some(delay) = retry_info(detail) {
            return Some(delay);
        }
    }
    None
}

/// Returns the delay in a `google.protobuf.Any`, if it is a `RetryInfo`.
fn retry_info(any: &[u8]) -> Option<Duration> {
    let kind = message(any, 1)?;
    if kind.rsplit(|byte| *byte == b'/').next() != Some(RETRY_INFO) {
        return None;
    }
    let delay = message(message(any, 2)?, 1)?;
    let seconds = u64::try_from(number(delay, 1)?).ok()?;
    let nanoseconds =
        u32::try_from(number(delay, 2)?).ok().filter(|nanoseconds| *nanoseconds < 1_000_000_000)?;
    Some(Duration::new(seconds, nanoseconds))
}

/// Returns the last message or text of this field, which overrides earlier ones; `None` if the message is invalid.
fn message(bytes: &[u8], wanted: u64) -> Option<&[u8]> {
    last(bytes, wanted, |value| if let Value::Bytes(bytes) = value { Some(bytes) } else { None })?
}

/// Returns the last number of this field; zero if it is absent.
fn number(bytes: &[u8], wanted: u64) -> Option<i64> {
    let last =
        last(bytes, wanted, |value| if let Value::Number(number) = value { Some(number) } else { None })?;
    Some(last.unwrap_or(0).cast_signed())
}

/// Returns the last value of this field that is of the given kind; `None` if the message is invalid.
fn last<'a, T>(bytes: &'a [u8], wanted: u64, of_kind: fn(Value<'a>) -> Option<T>) -> Option<Option<T>> {
    let mut last = None;
    for field in (Fields { bytes }) {
        let (number, value) = field?;
        if number == wanted {
            last = of_kind(value).or(last);
        }
    }
    Some(last)
}

/// A value of the wire format. Fixed-width values are never read.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// The fields of a message, in order. An invalid field is `None`, and the last item.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Reads a tag and the value after it; `None` if the message ends within them.
    fn field(&mut self) -> Option<(u64, Value<'a>)> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => self.take(8).map(|_| Value::Other)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Other)?,
            _ => return None,
        };
        Some((tag >> 3, value))
    }

    /// Takes this many bytes, if there are as many.
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.bytes.split_at_checked(length)?;
        self.bytes = left;
        Some(taken)
    }

    /// Reads a number in groups of seven bits, the lowest first; `None` after ten groups.
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Value<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.bytes = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use http::Response;
    use proptest::prelude::*;
    use tonic_types::{ErrorDetails, StatusExt};

    use super::*;

    /// Returns the hold in the head that tonic writes for this status.
    fn hold_of(status: tonic::Status) -> Option<Duration> {
        let response: Response<()> = status.into_http();
        hold(ResponseHead::of(&response))
    }

    fn with_delay(code: tonic::Code, delay: Option<Duration>) -> tonic::Status {
        let mut details = ErrorDetails::with_quota_failure_violation("clients", "too many");
        details.set_help(Vec::new()).set_localized_message("en", "later");
        details.set_retry_info(delay);
        tonic::Status::with_error_details(code, "later", details)
    }

    #[test]
    fn the_delay_that_tonic_writes_is_read() {
        for code in [tonic::Code::ResourceExhausted, tonic::Code::Unavailable] {
            for delay in [Duration::ZERO, Duration::from_millis(1500), Duration::from_secs(86_400)] {
                assert_eq!(hold_of(with_delay(code, Some(delay))), Some(delay));
            }
        }
        assert_eq!(hold_of(with_delay(tonic::Code::Unavailable, None)), None);
        assert_eq!(hold_of(tonic::Status::unavailable("gone")), None);
    }

    #[test]
    fn a_status_that_does_not_report_load_holds_no_call() {
        for code in [tonic::Code::Aborted, tonic::Code::Internal, tonic::Code::Ok] {
            assert_eq!(hold_of(with_delay(code, Some(Duration::from_secs(5)))), None, "{code:?}");
        }
    }

    #[test]
    fn of_pushback_and_details_the_longer_counts() {
        let both = |pushback: &str, delay| {
            let mut response: Response<()> =
                with_delay(tonic::Code::ResourceExhausted, Some(delay)).into_http();
            response.headers_mut().insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
            hold(ResponseHead::of(&response))
        };
        assert_eq!(both("250", Duration::ZERO), Some(Duration::from_millis(250)));
        assert_eq!(both("250", Duration::from_secs(1)), Some(Duration::from_secs(1)));
        assert_eq!(both("-1", Duration::from_secs(1)), Some(Duration::from_secs(1)));
        assert_eq!(both("soon", Duration::from_secs(1)), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_negative_delay_and_one_that_breaks_off_are_left_alone() {
        // Any { type_url, value: RetryInfo { retry_delay: Duration { seconds: -1 } } } as detail 3 of a status.
        let delay = [&[0x08][..], &[0xff; 9], &[0x01]].concat();
        let info = [&[0x0a, 11][..], &delay].concat();
        let url = b"type.googleapis.com/google.rpc.RetryInfo";
        let any = [&[0x0a, 40][..], url, &[0x12, 13], &info].concat();
        let status = [&[0x1a, u8::try_from(any.len()).unwrap()][..], &any].concat();
        assert_eq!(retry_delay(&status), None);
        for length in 0..status.len() {
            assert_eq!(retry_delay(&status[..length]), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_left_alone(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = retry_delay(&bytes);
            let _ = retry_info(&bytes);
        }
    }
}
