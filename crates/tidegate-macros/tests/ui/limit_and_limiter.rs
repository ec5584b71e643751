use std::sync::LazyLock;

use tidegate::{Limit, Refusal, Single};
use tidegate_macros::rate_limit;

static SHARED: LazyLock<Single> = LazyLock::new(|| Single::new(Limit::per_second(10)));

#[rate_limit("10/s", limiter = SHARED)]
fn report() -> Result<(), Refusal> {
    Ok(())
}

fn main() {}
