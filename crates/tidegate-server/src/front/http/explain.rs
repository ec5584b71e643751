//! `/v1/explain`: why a request would be answered as it would be, without spending anything.

use super::admit::unavailable;
use super::json;
use super::problem::Problem;
use super::reply::Reply;
use super::request::{EXAMPLE, Request};
use crate::engine::Engine;
use crate::explained::Explained;

pub(super) async fn explain(body: &[u8], engine: &Engine) -> Result<Reply, Problem> {
    let request: Request<'_> = json::read_like(EXAMPLE, body)?;
    let explained = engine.gate().explain(&request.into_attributes()).await;
    let explanation = explained.map_err(|error| unavailable(&error))?;
    Ok(Reply::of(&Explained::new(&explanation, engine.is_in_file())))
}
