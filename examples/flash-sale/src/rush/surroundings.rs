//! Where and how it was run: a number without that says nothing.

use std::thread;

use serde::Serialize;
use sqlx::Row;

use super::failure::Failure;
use super::plan::{Limiter, Plan};
use crate::database::{Database, Dialect};

/// Where and how it was run.
#[derive(Clone, Debug, Serialize)]
pub struct Surroundings {
    /// The command that does the same.
    pub command: String,
    /// The database and its version.
    pub database: String,
    /// Cores that the shop, the database and the crowd share.
    pub cores: usize,
    /// The day and time of the database, in UTC.
    pub date: String,
    /// Where the limiter's rate comes from; nothing if it had none.
    pub rate: String,
}

impl Surroundings {
    /// Asks the database and the machine.
    pub async fn of(plan: &Plan, rate: String) -> Result<Surroundings, Failure> {
        let database = Database::open(&plan.database, 1).await?;
        let words = match database.dialect() {
            Dialect::Sqlite => "SELECT sqlite_version() AS version",
            Dialect::Postgres => "SELECT current_setting('server_version') AS version",
            Dialect::MariaDb => "SELECT CAST(version() AS CHAR) AS version",
        };
        let unread = |error: sqlx::Error| Failure::of("database", error);
        let row = sqlx::query(words).fetch_one(database.pool()).await.map_err(unread)?;
        let version: String = row.try_get("version").map_err(unread)?;
        let now = database.now().await?;
        let surroundings = Surroundings {
            command: command(plan),
            database: format!("{} {version}", database.dialect()),
            cores: thread::available_parallelism().map_or(1, usize::from),
            date: date(now),
            rate,
        };
        database.close().await;
        Ok(surroundings)
    }
}

/// The command, without the addresses: they may hold passwords.
fn command(plan: &Plan) -> String {
    let strategies: Vec<&str> = plan.strategies.iter().map(|strategy| strategy.name()).collect();
    let limiter = match plan.limiters.as_slice() {
        [Limiter::Off] => "off",
        [Limiter::On] => "on",
        _ => "both",
    };
    let mut command = format!(
        "flash-sale rush --stock {} --buyers {} --strategy {} --limiter {limiter} --tries {} --clients {} \
         --connections {} --seed {}",
        plan.stock,
        plan.buyers,
        strategies.join(","),
        plan.tries,
        plan.clients,
        plan.connections,
        plan.seed,
    );
    if let Some(limit) = &plan.limit {
        command += &format!(" --rate \"{limit}\"");
    }
    command
}

/// Milliseconds since 1970 as a day and a time.
fn date(milliseconds: i64) -> String {
    let minutes = milliseconds.div_euclid(60_000);
    let (mut days, minute) = (minutes.div_euclid(1440), minutes.rem_euclid(1440));
    let mut year = 1970;
    while days >= days_of(year) {
        days -= days_of(year);
        year += 1;
    }
    let february = days_of(year) - 337;
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02} {:02}:{:02} UTC", days + 1, minute / 60, minute % 60)
}

fn days_of(year: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    365 + i64::from(is_leap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_709_251_199_999), "2024-02-29 23:59 UTC");
        assert_eq!(date(1_798_761_540_000), "2026-12-31 23:59 UTC");
    }

    #[test]
    fn the_command_says_no_addresses() {
        let mut plan = Plan::new("flash-sale", "postgres://shop:secret@db/shop");
        plan.redis = Some("redis://:secret@cache".to_owned());
        assert!(!command(&plan).contains("secret"));
        assert!(
            command(&plan)
                .contains("--strategy naive,value,version,conditional,pessimistic,redis --limiter both")
        );
    }
}
