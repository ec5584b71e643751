use tidegate_macros::rate_limit;

#[rate_limit("10/s")]
fn count() -> u32 {
    7
}

#[rate_limit("10/s")]
fn report() {}

#[rate_limit("10/s")]
async fn find() -> Option<String> {
    None
}

fn main() {}
