use tidegate::Refusal;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", kye = user)]
fn login(user: &str) -> Result<usize, Refusal> {
    Ok(user.len())
}

#[rate_limit("10/s", burst = 20)]
fn report() -> Result<(), Refusal> {
    Ok(())
}

fn main() {}
