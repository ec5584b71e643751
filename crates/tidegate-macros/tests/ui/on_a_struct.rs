use tidegate_macros::rate_limit;

#[rate_limit("10/s")]
struct Report;

fn main() {}
