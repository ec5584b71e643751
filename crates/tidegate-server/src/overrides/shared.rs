//! Overrides in Redis, for all servers with the same store and prefix.

use tidegate_redis::{OverrideTable, RedisStore, TableChange, TableRead};
use tidegate_rules::{MAX_OVERRIDES, Override, OverrideSet};

use super::record::{OverrideRecord, set_of};
use super::{AuditRecord, KnownOverrides, NotKept};
use crate::engine::{Engine, not_available};

/// The maximum number of attempts of a change. Each fails only if another server has changed an override meanwhile.
const MAX_ATTEMPTS: usize = 16;
/// The time for which Redis keeps the overrides after the last of them has ended: the clocks of servers differ.
const MARGIN_SECONDS: i64 = 24 * 3600;

/// The overrides in Redis.
#[derive(Debug)]
pub(super) struct SharedOverrides {
    table: OverrideTable,
    /// The server, for messages.
    url: String,
}

/// The table at the last read, to find out that Redis has lost data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenTable {
    /// The lowest version that it may have now.
    version: u64,
    epoch: Option<u64>,
}

/// The overrides that were read, with the fields of all of them, also of those that have ended.
struct ReadBack {
    version: u64,
    epoch: Option<u64>,
    fields: Vec<Vec<u8>>,
    set: OverrideSet,
}

impl SharedOverrides {
    pub(super) fn new(redis: &RedisStore) -> SharedOverrides {
        SharedOverrides { table: redis.overrides(), url: redis.url().to_string() }
    }

    /// Puts the overrides in Redis in force if there is another version than the known one.
    pub(super) async fn look(&self, engine: &Engine, known: &mut KnownOverrides) -> Result<(), NotKept> {
        let version = self.table.version().await.map_err(|error| self.away(&not_available(&error)))?;
        if known.version == Some(version) {
            return Ok(());
        }
        let read = self.read(engine.gate().date()).await?;
        self.report_loss(engine, known, &read);
        engine.gate().replace_overrides(read.set);
        known.version = Some(read.version);
        Ok(())
    }

    /// Reports overrides in force here that Redis has lost since the last read: all of them, or the newest. Each loss is
    /// reported once.
    fn report_loss(&self, engine: &Engine, known: &mut KnownOverrides, read: &ReadBack) {
        let now = SeenTable { version: read.version, epoch: read.epoch };
        let Some(last) = known.seen.replace(now) else { return };
        let is_new = read.version == 0 || last.epoch.is_some_and(|epoch| read.epoch != Some(epoch));
        if last.version == 0 || !is_new && read.version >= last.version {
            return;
        }
        let before = engine.gate().override_set();
        let is_kept = |one: &Override| read.set.get(&one.id()).is_some_and(|kept| kept.is_same_as(one));
        let ended = before.iter().filter(|one| !is_kept(one)).count();
        if read.set == before || is_new && ended == 0 {
            return;
        }
        let (first, what) = match is_new {
            true => (
                "overrides have ended without a request",
                format!(
                    "has lost its overrides; {ended} ended here. Put them again, and let Redis keep its data"
                ),
            ),
            false => (
                "overrides are those of an earlier time",
                format!(
                    "has an older version of the overrides than before, as after a failover to a replica that lagged; \
                     {ended} ended or changed here. Compare the list, and put them again"
                ),
            ),
        };
        engine.rules().report(first, &[format!("{}: {what}", self.url)]);
    }

    /// Changes the overrides in Redis, and puts the result in force.
    pub(super) async fn change<T, E: From<NotKept>>(
        &self,
        engine: &Engine,
        known: &mut KnownOverrides,
        audit: &AuditRecord,
        apply: impl Fn(&mut OverrideSet) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut is_logged = false;
        let failed = |is_logged: bool, why: &NotKept| {
            if is_logged {
                engine.audit().append_failure(audit, why);
            }
        };
        for _ in 0..MAX_ATTEMPTS {
            let mut read = self.read(engine.gate().date()).await.inspect_err(|why| failed(is_logged, why))?;
            self.report_loss(engine, known, &read);
            let before = read.set.clone();
            let changed = match apply(&mut read.set) {
                Ok(changed) => changed,
                Err(error) => {
                    failed(is_logged, &NotKept("another change came first".to_owned()));
                    return Err(error);
                }
            };
            if read.set != before {
                if !is_logged {
                    engine.audit().append(audit)?;
                    is_logged = true;
                }
                let change = read.change_from(&before).inspect_err(|why| failed(is_logged, why))?;
                let made = self.table.change(read.version, &change).await;
                let made = made.map_err(|error| self.away(&not_available(&error)));
                if !made.inspect_err(|why| failed(is_logged, why))? {
                    continue;
                }
                // An older one means that this change was lost.
                known.seen = Some(SeenTable { version: read.version + 1, epoch: read.epoch });
            }
            engine.gate().replace_overrides(read.set);
            // The next look reads the new version back.
            known.version = None;
            return Ok(changed);
        }
        let why = self.away("other servers change overrides all the time; try again");
        failed(is_logged, &why);
        Err(why.into())
    }

    /// Reads all overrides. Those that have ended are not in the set.
    async fn read(&self, now: i64) -> Result<ReadBack, NotKept> {
        // Some more than this server accepts may be there, and have ended.
        let read = self.table.read(2 * MAX_OVERRIDES).await;
        let TableRead { version, epoch, count, each, .. } =
            read.map_err(|error| self.away(&not_available(&error)))?;
        let Some(each) = each else {
            return Err(self.away(&format!(
                "has {count} overrides, and there are at most {MAX_OVERRIDES}; delete some of the hash by hand"
            )));
        };
        let set = set_of(each.iter().map(|(_, json)| OverrideRecord::read(json)), now).map_err(|what| {
            self.away(&format!("{what}; delete that field of the hash by hand, and put it again"))
        })?;
        Ok(ReadBack { version, epoch, fields: each.into_iter().map(|(field, _)| field).collect(), set })
    }

    fn away(&self, what: &str) -> NotKept {
        NotKept(format!("overrides in {}: {what}", self.url))
    }
}

impl ReadBack {
    /// Returns the change of the table that makes the set out of what was read: `before` are the overrides that had not
    /// ended.
    fn change_from(&self, before: &OverrideSet) -> Result<TableChange, NotKept> {
        let field = |one: &Override| one.id().encoded().into_bytes();
        let kept: std::collections::BTreeSet<_> = self.set.iter().map(field).collect();
        let removed = self.fields.iter().filter(|field| !kept.contains(*field)).cloned().collect();
        let mut change = TableChange { removed, ..TableChange::default() };
        for one in self.set.iter().filter(|one| before.get(&one.id()) != Some(one)) {
            let json =
                serde_json::to_vec(&OverrideRecord::from(one)).map_err(|error| NotKept(error.to_string()))?;
            change.set.push((field(one), json));
        }
        let ends: Option<Vec<i64>> = self.set.iter().map(|one| one.until).collect();
        // Without overrides, the version alone stays for a while, so that other servers see the change.
        let last =
            ends.map(|ends| ends.into_iter().max().unwrap_or_else(|| jiff::Timestamp::now().as_second()));
        change.until = last.map(|last| last.saturating_add(MARGIN_SECONDS).try_into().unwrap_or(1));
        Ok(change)
    }
}
