use tidegate_macros::rate_limit;

#[rate_limit("10/s", otherwise = cached)]
fn load(name: &str) -> String {
    name.to_owned()
}

fn cached(name: &str) -> usize {
    name.len()
}

fn main() {}
