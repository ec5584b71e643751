use tidegate::Refusal;
use tidegate_macros::rate_limit;

#[rate_limit("10/s burst 0")]
fn report() -> Result<(), Refusal> {
    Ok(())
}

fn main() {}
