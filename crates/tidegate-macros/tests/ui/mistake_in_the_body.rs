use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s")]
fn count() -> Result<u32, Denied> {
    let number: u32 = "seven";
    Ok(number)
}

#[rate_limit("10/s", key = user)]
fn login(user: String) -> Result<String, Denied> {
    drop(user);
    Ok(user)
}

#[rate_limit("10/s")]
fn forgetful() -> Result<u32, Denied> {
    Ok(7);
}

fn main() {}
