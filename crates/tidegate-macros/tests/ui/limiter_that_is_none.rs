use tidegate::{Limit, Refusal};
use tidegate_macros::rate_limit;

const LIMIT: Limit = Limit::per_second(10);

#[rate_limit(limiter = LIMIT)]
fn report() -> Result<(), Refusal> {
    Ok(())
}

fn main() {}
