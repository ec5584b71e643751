use tidegate_macros::rate_limit;

struct Report;

#[rate_limit("10/s")]
impl Report {
    fn write(&self) {}
}

fn main() {}
