use tidegate_macros::rate_limit;

#[rate_limit("10/s", otherwise = cached)]
fn load(name: &str, length: usize) -> String {
    name.repeat(length)
}

fn cached(name: &str) -> String {
    name.to_owned()
}

fn main() {}
