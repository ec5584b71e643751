//! Why a rush could not be.

use std::fmt;
use std::io;

use crate::database::Fault;

/// Something that a rush needs is not there.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    pub(super) fn shop(text: impl fmt::Display) -> Failure {
        Failure(format!("shop: {text}"))
    }

    pub(super) fn buyers(error: &io::Error) -> Failure {
        Failure(format!("buyers: {error}; fewer --clients need fewer open files"))
    }

    pub(super) fn of(what: impl fmt::Display, why: impl fmt::Display) -> Failure {
        Failure(format!("{what}: {why}"))
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure(fault.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
