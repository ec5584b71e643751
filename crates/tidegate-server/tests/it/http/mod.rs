//! Tests of HTTP as a client sees it: raw bytes in, raw bytes out.

mod admit;
mod admit_wrong;
mod auth;
pub(crate) mod bans;
mod batch;
mod bounds;
mod calendars;
mod connections;
mod dialects;
mod explain;
mod health;
mod operators;
mod overrides;
mod pages;
mod problems;
mod put_rules;
pub(crate) mod rule_key;
mod rule_metrics;
mod rules;
mod slow;
mod throttle;
mod top;
mod unauthenticated;
mod unmatched;
mod verbs;
