use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s brust 20")]
fn report() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
