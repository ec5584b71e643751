//! Tests of reloads under load: by signal, and by the watcher.

mod place;
mod signals;
mod thousand;
mod traffic;
mod watched;
