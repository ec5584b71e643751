//! The shop over real databases, and its parts.
//!
//! All of it is for tests only and says so, because then also the helpers may unwrap.

#[cfg(test)]
mod addresses;
#[cfg(test)]
mod books;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod databases;
#[cfg(test)]
mod hint;
#[cfg(test)]
mod hinted;
#[cfg(test)]
mod http;
#[cfg(test)]
mod keeper;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod links;
#[cfg(test)]
mod open;
#[cfg(test)]
mod pauses;
#[cfg(test)]
mod process;
#[cfg(test)]
mod proved;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod returns;
#[cfg(test)]
mod rush;
#[cfg(test)]
mod selling;
#[cfg(test)]
mod silent;
#[cfg(test)]
mod wishes;
