//! Rules as a program uses them: what has to hold whatever is written in a file and whatever is sent.
//!
//! `TIDEGATE_FULL=1` tries the full numbers instead of a share, `TIDEGATE_SEED=S` others than usual.

mod accepted;
mod adjusting;
mod all_or_none;
mod batches;
mod candidates;
mod candidates_beside;
mod changed_numbers;
mod changed_overrides;
mod changes;
mod conformance;
mod faulty;
mod keys;
mod matching;
mod permits;
mod random;
mod reload;
mod reload_under_load;
mod requests;
mod schedules;
mod spelling;
mod spoofing;
mod store_failure;
mod store_failure_counts;
mod store_failure_permits;
mod store_supports;
mod written;
mod zone_files;
