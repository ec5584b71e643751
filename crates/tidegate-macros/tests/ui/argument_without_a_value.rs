use tidegate::Refusal;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", wait)]
fn report() -> Result<(), Refusal> {
    Ok(())
}

#[rate_limit(LOGIN)]
fn login() -> Result<(), Refusal> {
    Ok(())
}

fn main() {}
