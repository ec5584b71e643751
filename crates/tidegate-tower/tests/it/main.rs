//! The layers around real services.
//!
//! All modules are `cfg(test)`, so that the helpers may unwrap, too.

#[cfg(test)]
mod endings;
#[cfg(test)]
mod events;
#[cfg(test)]
mod guarded;
#[cfg(test)]
mod handlers;
#[cfg(test)]
mod in_flight;
#[cfg(test)]
mod limit;
