//! The first page of a zone's file, from anywhere.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tidegate::fuzzing::zone_header(bytes));
