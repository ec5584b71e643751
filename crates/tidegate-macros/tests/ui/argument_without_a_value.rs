use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", wait)]
fn report() -> Result<(), Denied> {
    Ok(())
}

#[rate_limit(LOGIN)]
fn login() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
