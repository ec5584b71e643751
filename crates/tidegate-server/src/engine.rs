//! What every front asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate::{AdHoc, Clock, CounterClock, Timestamp, Zone};
use tidegate_rules::NoMemory;

use crate::meter::Meters;
use crate::rules::Rules;
use crate::settings::{Settings, Token};

/// The states, what was counted, and whether the server goes on.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Subjects whose limit comes with each call.
    pub(crate) adhoc: AdHoc,
    /// Where they are held.
    pub(crate) zone: Zone,
    /// What is limited for whom.
    pub(crate) rules: Rules,
    pub(crate) settings: Settings,
    pub(crate) meters: Meters,
    started: Timestamp,
    stopping: AtomicBool,
}

impl Engine {
    pub(crate) fn new(mut settings: Settings, zone: Zone) -> Result<Arc<Engine>, NoMemory> {
        let rules = Rules::new(&mut settings, &zone)?;
        let meters = Meters::new(settings.threads.get());
        let adhoc = AdHoc::on(&zone, "");
        let started = CounterClock::new().now();
        let stopping = AtomicBool::new(false);
        Ok(Arc::new(Engine { adhoc, zone, rules, settings, meters, started, stopping }))
    }

    /// How long it has been running.
    pub(crate) fn uptime(&self) -> Duration {
        CounterClock::new().now().since(self.started).to_duration()
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.settings.token.as_ref()
    }

    /// From now on the server is not ready for anybody new.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}
