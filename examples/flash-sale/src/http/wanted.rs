//! The choices of a request in an experiment.

use axum::http::HeaderMap;

use super::answer::{Answer, unprocessable};
use super::app::App;
use crate::limits::Limiting;
use crate::strategy::Strategy;

const STRATEGY: &str = "x-strategy";
const LIMITER: &str = "x-limiter";

/// The limiter and the strategy of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) limiting: Limiting,
    pub(crate) strategy: Strategy,
}

impl Wanted {
    /// Returns the settings of the shop; in an experiment, those that the request chooses.
    pub(super) fn of(app: &App, headers: &HeaderMap) -> Result<Wanted, Answer> {
        let mut wanted = Wanted { limiting: app.limiting, strategy: app.strategy };
        if !app.is_experiment {
            return Ok(wanted);
        }
        if let Some(name) = headers.get(STRATEGY) {
            let name = String::from_utf8_lossy(name.as_bytes());
            wanted.strategy = name.parse().map_err(|error: String| unprocessable("bad_strategy", error))?;
        }
        if let Some(name) = headers.get(LIMITER) {
            let name = String::from_utf8_lossy(name.as_bytes());
            wanted.limiting = name.parse().map_err(|error: String| unprocessable("bad_limiter", error))?;
        }
        Ok(wanted)
    }
}
