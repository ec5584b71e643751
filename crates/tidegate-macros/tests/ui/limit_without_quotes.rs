use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit(10/s)]
fn report() -> Result<(), Denied> {
    Ok(())
}

#[rate_limit(limit = 10)]
fn count() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
