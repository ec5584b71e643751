//! Resets of a key: under one limit, or under all that its namespace has had.
//!
//! A reset also writes a mark, so that receipts of earlier takes refund nothing afterwards. Cached denials of this
//! process are removed before and after the call; those of other processes expire within seconds.

use redis::Value;
use tidegate_core::{StoreError, Subject};
use tokio::time::Instant;

use crate::exchange::Question;
use crate::script::{self, StateName};
use crate::store::Inner;

impl Inner {
    /// Resets a key under every limit of its namespace, and lifts a ban. Returns true if it had a state under one. One
    /// call reads the table of each namespace, and one removes the states.
    pub(crate) async fn reset(&self, subject: Subject<'_>) -> Result<bool, StoreError> {
        let due = self.due()?;
        let mut names = self.names_of(&subject, due).await?;
        for of_penalty in subject.ban_and_strikes().into_iter().flatten() {
            names.extend(self.names_of(&of_penalty, due).await?);
        }
        self.forget_states(names, due).await
    }

    /// Returns the names of a key's states under every limit of its namespace. The given limit is included even if it
    /// is not listed.
    async fn names_of(&self, subject: &Subject<'_>, due: Instant) -> Result<Vec<StateName>, StoreError> {
        let own = self.target(subject)?.name;
        let listed = self.listed_names(subject.namespace(), due).await?;
        let mut names: Vec<_> = listed.iter().map(|name| name.state(self.prefix(), subject.key())).collect();
        if !names.contains(&own) {
            names.push(own);
        }
        Ok(names)
    }

    /// Resets a key under one limit. Returns true if it had a state. It reads no table. States under previous numbers
    /// of the limit stay, and may be carried over.
    pub(crate) async fn reset_limit(&self, subject: Subject<'_>) -> Result<bool, StoreError> {
        let name = self.target(&subject)?.name;
        self.forget_states(vec![name], self.due()?).await
    }

    /// Removes all states of a key, and the table of the limits that its namespace has had. It is for the doctor's own
    /// namespace, which no other client uses.
    pub(crate) async fn forget_namespace(&self, subject: Subject<'_>) -> Result<(), StoreError> {
        let due = self.due()?;
        let names = self.names_of(&subject, due).await?;
        self.forget_states(names.clone(), due).await?;
        let marks: Vec<_> = names.iter().map(|name| script::mark_name(name)).collect();
        self.ask(Question::Forget(marks.into()), due).await?;
        let table = script::table_name(self.prefix(), subject.namespace());
        self.listings.forget_written();
        self.ask(Question::Forget([table].into()), due).await?;
        Ok(())
    }

    /// Removes these states, which share a slot. Returns true if there was one. The removal is atomic: no take of the
    /// key comes in between.
    async fn forget_states(&self, names: Vec<StateName>, due: Instant) -> Result<bool, StoreError> {
        names.iter().for_each(|name| self.forget(name));
        let answer = self.run(script::reset(&names, self.time()), due).await;
        names.iter().for_each(|name| self.forget(name));
        Ok(!matches!(answer?, Value::Int(0)))
    }
}
