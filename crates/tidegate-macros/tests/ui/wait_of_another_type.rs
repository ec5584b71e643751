use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", wait = seconds)]
fn report(seconds: u64) -> Result<u64, Denied> {
    Ok(seconds)
}

fn main() {}
