//! The layers around real services.
//!
//! All of it is for tests only and says so, because then also the helpers may unwrap.

#[cfg(test)]
mod endings;
#[cfg(test)]
mod guarded;
#[cfg(test)]
mod in_flight;
#[cfg(test)]
mod limit;
