use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s", cost = items.len())]
fn upload(items: &[u8]) -> Result<(), Denied> {
    Ok(())
}

fn main() {}
