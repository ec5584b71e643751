use tidegate::Refusal;
use tidegate_macros::rate_limit;

#[rate_limit("10/s")]
fn count() -> Result<u32, Refusal> {
    let number: u32 = "seven";
    Ok(number)
}

#[rate_limit("10/s", key = user)]
fn login(user: String) -> Result<String, Refusal> {
    drop(user);
    Ok(user)
}

#[rate_limit("10/s")]
fn forgetful() -> Result<u32, Refusal> {
    Ok(7);
}

fn main() {}
