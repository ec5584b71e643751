use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", key = user)]
#[rate_limit("100/s")]
fn login(user: &str) -> Result<usize, Denied> {
    Ok(user.len())
}

fn main() {}
