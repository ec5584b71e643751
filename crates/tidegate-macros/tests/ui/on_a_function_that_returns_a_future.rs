use std::future::Future;
use std::pin::Pin;

use tidegate::Denied;
use tidegate_macros::rate_limit;

#[rate_limit("10/s")]
fn opaque() -> impl Future<Output = Result<(), Denied>> {
    async { Ok(()) }
}

#[rate_limit("10/s")]
fn boxed() -> Pin<Box<dyn Future<Output = Result<(), Denied>> + Send>> {
    Box::pin(async { Ok(()) })
}

fn main() {}
