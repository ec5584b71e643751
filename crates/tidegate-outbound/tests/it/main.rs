//! The layer for clients around real clients, and with the layers of `tidegate-tower`.
//!
//! All modules are `cfg(test)`, so that the helpers may unwrap, too.

#[cfg(test)]
mod layers;
#[cfg(test)]
mod outgoing;
#[cfg(test)]
mod readiness;
#[cfg(test)]
mod server;
