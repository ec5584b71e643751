//! Tests of the public API of rules, with random files and requests.
//!
//! `TIDEGATE_FULL=1` runs the full number of cases instead of a share; `TIDEGATE_SEED=S` selects another seed.

mod accepted;
mod adjusting;
mod all_limits;
mod all_or_none;
mod batches;
mod calendars;
mod candidates;
mod candidates_beside;
mod changed_numbers;
mod changed_overrides;
mod changes;
mod conformance;
mod evaluator;
mod faulty;
mod groups;
mod in_code;
mod keys;
mod limit_for;
mod matching;
mod overrides_in_several_gates;
mod penalties;
mod permits;
mod random;
mod reload;
mod reload_under_load;
mod requests;
mod rule_keys;
mod schedules;
mod spelling;
mod spoofing;
mod store_failure;
mod store_failure_counts;
mod store_failure_permits;
mod store_supports;
mod written;
mod zone_files;
