use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit]
fn report() -> Result<(), Denied> {
    Ok(())
}

#[rate_limit(key = user)]
fn login(user: &str) -> Result<usize, Denied> {
    Ok(user.len())
}

fn main() {}
