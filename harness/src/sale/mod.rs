//! A shop seen from outside: a crowd of buyers, and a verifier that compares the replies to buyers with the books.
//!
//! ```text
//!   Serving: a shop in a process of its own, killed and started again by the test or the drill
//!      ^ Door: signed requests over HTTP
//!   Crowd: everybody tries at once, a few times --> Heard
//!   Buyer: asks again with the same key after everything that is lost --> WishResult --.
//!   Ledger: the books and their audit, read from the database -------------------------+--> findings: none, or a
//!   Round: a sale, its buyers, trouble in the middle of it ----------------------------'    guarantee is broken
//!   rush: the crowd at every strategy, with and without a limiter --> table, picture, page
//! ```
//!
//! It speaks HTTP to a shop and reads its books through a [`Ledger`], so it shares nothing with the code that sells.

mod books;
mod buyer;
mod crowd;
mod door;
mod round;
#[cfg(feature = "rush")]
pub mod rush;
mod serving;

pub use books::{Books, Entry, Line, WishResult, Word};
pub use buyer::Buyer;
pub use crowd::{Crowd, Heard};
pub use door::{Answer, Client, Door, Links, Wish, ask};
pub use round::{Figures, Ledger, Round, Scene, Tally, open};
pub use serving::{Serving, Stage};
