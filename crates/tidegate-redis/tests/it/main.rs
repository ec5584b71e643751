//! Tests of the store on real servers: standalone, with Sentinels, in a cluster; healthy, slow, disconnected, killed,
//! replaced.

mod abandoned;
mod changes;
mod cluster;
mod conformance;
mod faults;
mod messages;
mod order;
mod overrides;
mod penalties;
mod permissions;
mod refunds;
mod remembered;
mod sentinel;
mod setup;
mod states;
mod tables;
mod together;
mod twins;
mod versions;
