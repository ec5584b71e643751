//! A whole session, from anywhere.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tidegate_server::fuzzing::resp_session(bytes));
