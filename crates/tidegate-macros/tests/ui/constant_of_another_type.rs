use tidegate::Denied;
use tidegate_macros::rate_limit;

const RATE: u64 = 10;

#[rate_limit(limit = RATE)]
fn report() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
