//! The shop's own proof: buyers who never give up, and what they were told against what the books say.
//!
//! ```text
//!   Serving: a shop in a process of its own, killed and started again by whoever runs the proof
//!      ^ ask again with the same key after everything that is lost
//!   buyers --> Told --.
//!   auditor --------- +--> findings: nothing, or a guarantee is broken
//!   Books ------------'
//! ```
//!
//! Nothing here looks into the shop: it speaks HTTP to it and SQL to the database, as a stranger would.
//! Tests do a few rounds of it, drills do many.

mod asking;
mod auditor;
mod books;
mod buyer;
mod door;
mod figures;
mod round;
mod told;

pub use crate::serving::{Serving, Stage};
pub use asking::{Answer, ask};
pub use auditor::Auditor;
pub use books::{Books, Entry, expires_at, paid_at_the_end};
pub use buyer::Buyer;
pub use door::Door;
pub use figures::Figures;
pub use round::{Round, Scene};
pub use told::{Heard, Told};
