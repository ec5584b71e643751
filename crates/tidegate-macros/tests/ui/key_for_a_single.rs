use std::sync::LazyLock;

use tidegate::{Limit, Denied, DirectLimiter};
use tidegate_macros::rate_limit;

static SHARED: LazyLock<DirectLimiter> = LazyLock::new(|| DirectLimiter::new(Limit::per_second(10)));

#[rate_limit(limiter = SHARED, key = user)]
fn login(user: &str) -> Result<usize, Denied> {
    Ok(user.len())
}

fn main() {}
