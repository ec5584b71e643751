use tidegate::Refusal;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", key = user, key = user)]
fn login(user: &str) -> Result<usize, Refusal> {
    Ok(user.len())
}

#[rate_limit("10/s", "100/m")]
fn report() -> Result<(), Refusal> {
    Ok(())
}

fn main() {}
