use tidegate::Refusal;
use tidegate_macros::rate_limit;

#[rate_limit(10/s)]
fn report() -> Result<(), Refusal> {
    Ok(())
}

#[rate_limit(limit = 10)]
fn count() -> Result<(), Refusal> {
    Ok(())
}

fn main() {}
