//! The command line, as whoever types it meets it.

mod bad_starts;
mod call;
mod scripts;
mod serve;
mod settings;
mod take;
