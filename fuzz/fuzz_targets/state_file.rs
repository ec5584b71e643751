//! A state file, header and blocks, from anywhere.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| tidegate::fuzzing::state_file(bytes));
