//! Tests of servers that share their counts in a real Redis.

mod away;
mod crowd;
mod many;
mod midnight;
mod order;
mod pieces;
mod place;
mod rule_keys;
mod rules;
mod secrets;
mod shared;
mod unknown;
mod unsent;
mod verbs;
