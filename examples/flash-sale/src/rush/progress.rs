//! What happens while it happens.

use tidegate::Limit;

use super::figures::Figures;
use super::plan::Combination;
use crate::strategy::Strategy;

/// A step of a rush.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'f> {
    /// This one was asked for, but what it needs is not there.
    Skipped(Strategy),
    /// It is being measured what the database can do.
    Measuring,
    /// It was.
    Measured {
        /// Pieces sold per second.
        per_second: u64,
        /// To so many clients at a time.
        clients: u32,
        /// The limit that follows from it.
        limit: &'f Limit,
    },
    /// The crowd is let in.
    Started(Combination),
    /// So many tries are over, of all that there may be.
    Tried(u64),
    /// The crowd has gone.
    Ended(&'f Figures),
}
