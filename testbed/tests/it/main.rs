//! Real servers and real sockets: each launcher, each fault.

mod cluster;
mod databases;
mod process;
mod proxy;
mod redis;
mod sentinels;
