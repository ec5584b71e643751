use tidegate::{Limit, Denied};
use tidegate_macros::rate_limit;

const LIMIT: Limit = Limit::per_second(10);

#[rate_limit(limiter = LIMIT)]
fn report() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
