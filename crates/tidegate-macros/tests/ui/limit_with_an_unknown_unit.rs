use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("60/min burst 20")]
fn report() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
