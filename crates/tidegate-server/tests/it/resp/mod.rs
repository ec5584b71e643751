//! Tests of RESP as a client sees it: raw bytes in, raw bytes out.

mod commands;
mod greeting;
mod malformed;
mod raw;
mod slow;
mod split;
mod token;
