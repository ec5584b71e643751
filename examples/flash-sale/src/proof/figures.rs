//! What rounds came to.

use std::ops::AddAssign;

/// What was counted in one round or in several, and what was found wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Pieces that there were.
    pub stock: u64,
    /// Those that were sold in the end.
    pub paid: u64,
    /// Reservations that went back.
    pub returned: u64,
    /// Wishes that came to an end.
    pub wishes: u64,
    /// Questions that were lost or could not be answered, and were asked again.
    pub repeated: u64,
    /// Audits.
    pub audits: u64,
    /// Guarantees that were broken, and how.
    pub findings: Vec<String>,
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Figures) {
        self.stock += other.stock;
        self.paid += other.paid;
        self.returned += other.returned;
        self.wishes += other.wishes;
        self.repeated += other.repeated;
        self.audits += other.audits;
        self.findings.extend(other.findings);
    }
}
