use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", cost = 0)]
fn report() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
