//! Integration tests of the server, over real sockets and as a process.

mod client_examples;
mod clients;
mod command;
mod conformance;
mod documents;
mod gateways;
mod http;
mod lasting;
mod process;
mod redis;
mod reload;
mod resp;
mod state_owner;
mod transaction;
mod unfinished;
mod wire;
