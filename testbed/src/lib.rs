//! Real servers on free ports, faults between them and us, and a judge of what was decided.
//!
//! ```text
//!   who is tested --> Proxy: delays, eats, cuts, answers itself --> Redis | Sentinels | Cluster: real processes
//!         |`----------------------------------------------------> Postgres | MariaDb: real processes, real disks
//!         `--> Decided, Decided, … --> Judge: is every interval within its bound?
//! ```
//!
//! What cannot be set up panics and says why: there is no test without its servers.
//! Everything that was started ends when its value is dropped, and also when this process is killed.

mod any_database;
mod certificates;
mod cluster;
mod database;
mod family;
mod flavour;
mod judge;
mod mariadb;
mod postgres;
mod proxy;
mod redis;
mod resp;
mod sentinels;
mod settings;
mod template;

pub use harness::{Folder, Port, now, pause, until};

pub use any_database::AnyDatabase;
pub use certificates::Certificates;
pub use cluster::{Cluster, SLOTS};
pub use database::Database;
pub use flavour::{Flavour, Missing, client_program};
pub use judge::{Bound, Breach, By, Decided, Judge, Seen};
pub use mariadb::MariaDb;
pub use postgres::Postgres;
pub use proxy::{Admission, Afterwards, Counters, Direction, Flow, Proxy};
pub use redis::Redis;
pub use resp::{Connection, Reply};
pub use sentinels::Sentinels;
pub use settings::Settings;
