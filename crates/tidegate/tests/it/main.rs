//! Programs as a new user writes them from the documentation, with the facade as their only dependency of this workspace.

mod axum_api_key;
mod limited_handler;
mod paced_worker;
mod policy_in_code;
mod shared_over_redis;
