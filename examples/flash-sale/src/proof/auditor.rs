//! Looks into the books again and again, whatever happens to the shop meanwhile.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::database::Database;

/// Between two audits.
const EVERY: Duration = Duration::from_millis(700);

/// A task that audits until it is asked what it has found.
#[derive(Debug)]
pub struct Auditor {
    end: watch::Sender<bool>,
    task: JoinHandle<(u64, Vec<String>)>,
}

impl Auditor {
    /// Begins at once.
    pub fn start(database: Database) -> Auditor {
        let (end, ended) = watch::channel(false);
        Auditor { end, task: tokio::spawn(audit(database, ended)) }
    }

    /// How many audits there were, and what they found. A database that is away has nothing to be found in.
    pub async fn finish(self) -> (u64, Vec<String>) {
        let _ = self.end.send(true);
        self.task.await.unwrap_or_else(|error| (0, vec![format!("the auditor: {error}")]))
    }
}

async fn audit(database: Database, mut ended: watch::Receiver<bool>) -> (u64, Vec<String>) {
    let (mut audits, mut findings) = (0, Vec::new());
    loop {
        if let Ok(found) = database.audit().await {
            audits += 1;
            findings
                .extend(found.iter().map(|found| format!("audit: {} ({} rows)", found.wrong, found.rows)));
        }
        if timeout(EVERY, ended.wait_for(|is_over| *is_over)).await.is_ok() {
            return (audits, findings);
        }
    }
}
