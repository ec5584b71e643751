//! The body of a request, from anywhere.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tidegate_server::fuzzing::http_body(bytes));
