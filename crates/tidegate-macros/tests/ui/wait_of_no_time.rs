use tidegate::Refusal;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", wait = "0s")]
fn report() -> Result<(), Refusal> {
    Ok(())
}

fn main() {}
