use tidegate::Refusal;
use tidegate_macros::rate_limit;

#[rate_limit]
fn report() -> Result<(), Refusal> {
    Ok(())
}

#[rate_limit(key = user)]
fn login(user: &str) -> Result<usize, Refusal> {
    Ok(user.len())
}

fn main() {}
