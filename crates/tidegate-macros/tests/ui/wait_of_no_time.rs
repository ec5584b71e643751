use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", wait = "0s")]
fn report() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
