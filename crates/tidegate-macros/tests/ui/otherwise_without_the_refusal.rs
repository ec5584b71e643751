use tidegate_macros::rate_limit;

#[rate_limit("10/s", otherwise = || 0)]
fn count() -> u32 {
    7
}

fn main() {}
