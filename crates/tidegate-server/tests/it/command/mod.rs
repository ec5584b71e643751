//! Tests of the command line as a user runs it.

mod bad_starts;
mod broken_configs;
pub(crate) mod call;
mod check;
mod doctor;
mod explain;
mod init;
mod scripts;
mod serve;
mod settings;
mod store_files;
mod support;
mod take;
mod zone_file;
