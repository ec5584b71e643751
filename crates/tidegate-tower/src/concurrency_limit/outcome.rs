//! The outcome of a call, by the head of its response.

use http::StatusCode;
use tidegate_core::Outcome;

use super::OutcomeOf;
use crate::body::OwnDenial;
use crate::head::ResponseHead;

/// Returns the outcome of a call by the status of its response.
///
/// | response | outcome |
/// |---|---|
/// | a denial by a layer of this crate, whatever its status | [`Ignored`](Outcome::Ignored) |
/// | 408, 429 | [`Ignored`](Outcome::Ignored): one caller was slow, or has used up its own quota |
/// | 503, 504 | [`Overloaded`](Outcome::Overloaded) |
/// | any other 5xx | [`Failed`](Outcome::Failed) |
/// | gRPC `DEADLINE_EXCEEDED`, `UNAVAILABLE` | [`Overloaded`](Outcome::Overloaded) |
/// | gRPC `UNKNOWN`, `INTERNAL`, `DATA_LOSS` | [`Failed`](Outcome::Failed) |
/// | gRPC `CANCELLED`, `RESOURCE_EXHAUSTED` | [`Ignored`](Outcome::Ignored) |
/// | anything else | [`Done`](Outcome::Done) |
///
/// If a service sends 429 because it is overloaded as a whole, set `.outcome(..)` of the layer.
/// The head contains the gRPC status only if the response has no messages, as in most denials and errors.
///
/// ```
/// use http::Response;
/// use tidegate::Outcome;
/// use tidegate::tower::{ResponseHead, outcome_of};
///
/// let response = Response::builder().status(503).body(())?;
/// assert_eq!(outcome_of(ResponseHead::of(&response)), Outcome::Overloaded);
/// # Ok::<(), http::Error>(())
/// ```
pub fn outcome_of(head: ResponseHead<'_>) -> Outcome {
    if is_own_denial(head) {
        return Outcome::Ignored;
    }
    match head.status() {
        // One caller can provoke these at will, and would lower the limit for all others.
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Outcome::Ignored,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => Outcome::Overloaded,
        status if status.is_server_error() => Outcome::Failed,
        _ => head.grpc_status().map_or(Outcome::Done, outcome_of_grpc),
    }
}

/// Returns the outcome of a call: by a function, if there is one, or else by [`outcome_of`].
///
/// A denial by an inner layer depends on its caller. It is no outcome of the service, which was not called.
pub(crate) fn judge(outcome: Option<&OutcomeOf>, head: ResponseHead<'_>) -> Outcome {
    match outcome {
        Some(outcome) if !is_own_denial(head) => outcome(head),
        _ => outcome_of(head),
    }
}

/// Returns true if a layer of this crate denied the request, so that the response is not from the service.
pub fn is_own_denial(head: ResponseHead<'_>) -> bool {
    head.extension::<OwnDenial>().is_some()
}

/// Returns the outcome of a gRPC call by the number of its status.
pub(crate) fn outcome_of_grpc(status: u32) -> Outcome {
    match status {
        1 | 8 => Outcome::Ignored,
        4 | 14 => Outcome::Overloaded,
        2 | 13 | 15 => Outcome::Failed,
        _ => Outcome::Done,
    }
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    #[test]
    fn a_status_says_whether_it_was_load() {
        let outcome =
            |status: u16| outcome_of(ResponseHead::of(&Response::builder().status(status).body(()).unwrap()));
        for status in [200, 204, 301, 304, 400, 401, 404, 499] {
            assert_eq!(outcome(status), Outcome::Done, "{status}");
        }
        for status in [500, 501, 502, 505, 599] {
            assert_eq!(outcome(status), Outcome::Failed, "{status}");
        }
        for status in [503, 504] {
            assert_eq!(outcome(status), Outcome::Overloaded, "{status}");
        }
        for status in [408, 429] {
            assert_eq!(outcome(status), Outcome::Ignored, "{status}");
        }
    }

    #[test]
    fn so_does_a_status_of_grpc() {
        let outcome = |status: u32| {
            let response: Response<()> =
                tonic::Status::new(tonic::Code::from_i32(status.cast_signed()), "").into_http();
            outcome_of(ResponseHead::of(&response))
        };
        for status in [0, 3, 5, 6, 7, 9, 10, 11, 12, 16] {
            assert_eq!(outcome(status), Outcome::Done, "{status}");
        }
        for status in [2, 13, 15] {
            assert_eq!(outcome(status), Outcome::Failed, "{status}");
        }
        for status in [4, 14] {
            assert_eq!(outcome(status), Outcome::Overloaded, "{status}");
        }
        for status in [1, 8] {
            assert_eq!(outcome(status), Outcome::Ignored, "{status}");
        }
    }
}
