use tidegate_macros::rate_limit;

#[rate_limit("10/s", otherwise = cached)]
async fn load(name: String) -> String {
    name
}

fn cached(name: String) -> String {
    name
}

fn main() {}
