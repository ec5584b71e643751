use std::sync::LazyLock;

use tidegate::{Limit, Refusal, Single};
use tidegate_macros::rate_limit;

static SHARED: LazyLock<Single> = LazyLock::new(|| Single::new(Limit::per_second(10)));

#[rate_limit(limiter = SHARED, key = user)]
fn login(user: &str) -> Result<usize, Refusal> {
    Ok(user.len())
}

fn main() {}
