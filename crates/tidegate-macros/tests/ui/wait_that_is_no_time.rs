use tidegate::Refusal;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", wait = "1min")]
fn report() -> Result<(), Refusal> {
    Ok(())
}

#[rate_limit("10/s", wait = 5)]
fn count() -> Result<(), Refusal> {
    Ok(())
}

fn main() {}
