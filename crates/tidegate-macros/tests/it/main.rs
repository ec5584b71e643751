//! What the attribute does, and what it says to those who use it wrongly.

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
