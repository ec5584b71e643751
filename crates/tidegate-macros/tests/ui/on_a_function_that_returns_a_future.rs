use std::future::Future;
use std::pin::Pin;

use tidegate::Refusal;
use tidegate_macros::rate_limit;

#[rate_limit("10/s")]
fn opaque() -> impl Future<Output = Result<(), Refusal>> {
    async { Ok(()) }
}

#[rate_limit("10/s")]
fn boxed() -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send>> {
    Box::pin(async { Ok(()) })
}

fn main() {}
