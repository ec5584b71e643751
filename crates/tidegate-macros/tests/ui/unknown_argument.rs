use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", kye = user)]
fn login(user: &str) -> Result<usize, Denied> {
    Ok(user.len())
}

#[rate_limit("10/s", burst = 20)]
fn report() -> Result<(), Denied> {
    Ok(())
}

fn main() {}
