use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", key = user, key = user)]
fn login(user: &str) -> Result<usize, Denied> {
    Ok(user.len())
}

#[rate_limit("10/s", "100/m")]
fn report() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
