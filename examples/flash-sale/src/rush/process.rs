//! A shop in a process of its own, so that what it counts and what it costs is its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use serde::Deserialize;
use tidegate::Limit;

use super::client::Client;
use super::failure::Failure;
use super::plan::Plan;
use crate::serving::{Serving, Stage};

/// A shop that ends with its value.
#[derive(Debug)]
pub(super) struct Process(Serving);

impl Process {
    /// Opens a shop for a sale that is there already. Links are signed with the secret.
    pub(super) async fn start(
        plan: &Plan,
        sale: i64,
        limit: &Limit,
        secret: &str,
    ) -> Result<Process, Failure> {
        let (limit, connections) = (limit.to_string(), plan.connections.to_string());
        let further = ["--limiter", "bucket", "--rate", &limit, "--connections", &connections];
        let stage = Stage {
            program: plan.program.clone(),
            database: plan.database.clone(),
            redis: plan.redis.clone(),
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            secret: secret.to_owned(),
            further: further.map(str::to_owned).to_vec(),
        };
        Serving::start(&stage, sale).await.map(Process).map_err(Failure::shop)
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// What it has counted so far.
    pub(super) async fn numbers(&self) -> Result<Numbers, Failure> {
        let failed = |error: io::Error| Failure::shop(format!("the shopkeeper's numbers: {error}"));
        let mut client = Client::connect(self.address()).await.map_err(failed)?;
        let body = client.look(&self.0.numbers().unwrap_or_default()).await.map_err(failed)?;
        serde_json::from_slice(&body).map_err(|error| failed(error.into()))
    }
}

/// What a shop has counted, as far as it matters here.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Numbers {
    pub(super) totals: Totals,
    /// Of all attempts.
    pub(super) all_latency_ms: Latency,
}

/// See [`crate::meter::Totals`].
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Totals {
    pub(super) requests: u64,
    pub(super) refused: u64,
    pub(super) attempts: u64,
    pub(super) conflicts: u64,
    pub(super) faults: u64,
}

/// How long attempts took, if there were any.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Latency {
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
}
