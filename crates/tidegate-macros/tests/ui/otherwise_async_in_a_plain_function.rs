use tidegate_macros::rate_limit;

#[rate_limit("10/s", otherwise = cached)]
fn load(name: String) -> String {
    name
}

async fn cached(name: String) -> String {
    name
}

#[rate_limit("10/s", otherwise = async |_| 0)]
fn count() -> u32 {
    7
}

fn main() {}
