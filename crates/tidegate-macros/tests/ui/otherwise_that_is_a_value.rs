use tidegate_macros::rate_limit;

#[rate_limit("10/s", otherwise = String::new())]
fn load(name: &str) -> String {
    name.to_owned()
}

fn main() {}
