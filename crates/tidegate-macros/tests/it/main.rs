//! The behavior of the attribute, and its error messages.

mod awaited;
mod hygiene;
mod keys;
mod otherwise;
mod plain;
mod returns;
mod shared;
mod threads;
mod ui;
mod waiting;
