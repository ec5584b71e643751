//! The layer for clients around real clients, and with the layers of `tidegate-tower`.
//!
//! All of it is for tests only and says so, because then also the helpers may unwrap.

#[cfg(test)]
mod layers;
#[cfg(test)]
mod outgoing;
#[cfg(test)]
mod readiness;
#[cfg(test)]
mod server;
