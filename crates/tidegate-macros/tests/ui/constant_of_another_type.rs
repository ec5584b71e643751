use tidegate::Refusal;
use tidegate_macros::rate_limit;

const RATE: u64 = 10;

#[rate_limit(limit = RATE)]
fn report() -> Result<(), Refusal> {
    Ok(())
}

fn main() {}
