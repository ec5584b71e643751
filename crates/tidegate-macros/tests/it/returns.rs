//! Denials as values of the return types of functions.

use std::error::Error;
use std::fmt;

use tidegate::{Denied, FromDenied};
use tidegate_macros::rate_limit;

#[derive(Debug, PartialEq)]
enum Failure {
    TooMany(bool),
    NotANumber,
}

impl From<Denied> for Failure {
    fn from(refusal: Denied) -> Failure {
        Failure::TooMany(refusal.retry_after().is_some())
    }
}

impl From<std::num::ParseIntError> for Failure {
    fn from(_: std::num::ParseIntError) -> Failure {
        Failure::NotANumber
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, out)
    }
}

impl Error for Failure {}

type Answer<T> = Result<T, Failure>;

#[test]
fn an_error_of_the_user_is_made_of_the_refusal() {
    #[rate_limit("2/h")]
    fn parse(text: &str) -> Result<u32, Failure> {
        let number: u32 = text.parse()?;
        Ok(number + 1)
    }

    assert_eq!(parse("6"), Ok(7));
    assert_eq!(parse("six"), Err(Failure::NotANumber));
    assert_eq!(parse("6"), Err(Failure::TooMany(true)));
}

#[test]
fn an_alias_of_a_result_is_a_result() {
    #[rate_limit("1/h")]
    fn aliased() -> Answer<u8> {
        Ok(1)
    }

    assert_eq!(aliased(), Ok(1));
    assert_eq!(aliased(), Err(Failure::TooMany(true)));
}

#[test]
fn any_error_may_be_boxed() {
    #[rate_limit("1/h")]
    fn boxed() -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }

    assert!(boxed().is_ok());
    let error = boxed().expect_err("one too many");
    assert!(error.is::<Denied>(), "{error}");
}

#[test]
fn other_types_say_themselves_what_they_become() {
    #[derive(Debug, PartialEq)]
    struct Status(u16);
    impl FromDenied for Status {
        fn from_denied(_: Denied) -> Status {
            Status(429)
        }
    }

    #[rate_limit("1/h")]
    fn handle() -> Status {
        Status(200)
    }

    assert_eq!((handle(), handle()), (Status(200), Status(429)));
}
