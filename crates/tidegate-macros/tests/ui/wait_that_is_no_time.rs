use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", wait = "1min")]
fn report() -> Result<(), Denied> {
    Ok(())
}

#[rate_limit("10/s", wait = 5)]
fn count() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
