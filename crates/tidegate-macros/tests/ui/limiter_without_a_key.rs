use std::sync::LazyLock;

use tidegate::{Limit, Limiter, Denied};
use tidegate_macros::rate_limit;

static BY_USER: LazyLock<Limiter> = LazyLock::new(|| Limiter::new(Limit::per_second(10)));

#[rate_limit(limiter = BY_USER, wait = "1s")]
fn login(user: &str) -> Result<usize, Denied> {
    Ok(user.len())
}

fn main() {}
