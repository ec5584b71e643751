//! Limits as text, or from other values that may be invalid, wherever a limit is taken.
//!
//! Each `try_` function takes what its plain twin takes, as `impl TryInto<Limit>`: a [`Limit`], its text, or a
//! [`LimitBuilder`](crate::LimitBuilder).

use crate::direct::DirectLimiter;
use crate::dynamic::DynamicLimiter;
use crate::limit::{Limit, LimitError, Rate};
use crate::limiter::Limiter;
use crate::pacer::Pacer;
use crate::shaper::Shaper;
use crate::shared_limiter::SharedLimiter;
use crate::store::{MemoryStore, PreparedLimit, Store};

fn read<T>(value: impl TryInto<T, Error: Into<LimitError>>) -> Result<T, LimitError> {
    value.try_into().map_err(Into::into)
}

/// Limits as [text](Limit#text-of-a-limit), for example from a configuration.
impl Limiter {
    /// Creates a limiter like [`Limiter::new`] from a limit or its [text](Limit#text-of-a-limit), or returns an error
    /// if the limit is invalid.
    ///
    /// ```
    /// use tidegate::Limiter;
    ///
    /// let limiter = Limiter::try_new("10/s burst 20")?;
    /// assert!(limiter.admit("ana").is_allowed());
    /// let error = Limiter::try_new("60/min").unwrap_err();
    /// assert_eq!(error.to_string(), r#"limit "60/min": unknown unit "min"; write "60/m" or "60/60s""#);
    /// # Ok::<(), tidegate::LimitError>(())
    /// ```
    pub fn try_new(limit: impl TryInto<Limit, Error: Into<LimitError>>) -> Result<Limiter, LimitError> {
        read(limit).map(Limiter::new)
    }

    /// Creates a limiter like [`Limiter::on`] from a limit or its [text](Limit#text-of-a-limit), or returns an error if
    /// the limit is invalid.
    pub fn try_on(
        store: impl Into<MemoryStore>,
        name: &str,
        limit: impl TryInto<Limit, Error: Into<LimitError>>,
    ) -> Result<Limiter, LimitError> {
        Ok(Limiter::on(store, name, read(limit)?))
    }

    /// Replaces the limit like [`Limiter::set_limit`]. If the limit is invalid, the old one stays in force.
    pub fn try_set_limit(
        &self,
        limit: impl TryInto<Limit, Error: Into<LimitError>>,
    ) -> Result<(), LimitError> {
        read(limit).map(|limit| self.set_limit(limit))
    }
}

/// Limits as [text](Limit#text-of-a-limit), for example from a configuration.
impl DirectLimiter {
    /// Creates a limiter like [`DirectLimiter::new`] from a limit or its [text](Limit#text-of-a-limit), or returns an
    /// error if the limit is invalid.
    pub fn try_new(limit: impl TryInto<Limit, Error: Into<LimitError>>) -> Result<DirectLimiter, LimitError> {
        read(limit).map(DirectLimiter::new)
    }

    /// Replaces the limit like [`DirectLimiter::set_limit`]. If the limit is invalid, the old one stays in force.
    pub fn try_set_limit(
        &self,
        limit: impl TryInto<Limit, Error: Into<LimitError>>,
    ) -> Result<(), LimitError> {
        read(limit).map(|limit| self.set_limit(limit))
    }
}

/// Limits as text, for example from a configuration.
impl SharedLimiter {
    /// Creates a limiter like [`SharedLimiter::on`], or returns an error if the limit is invalid.
    ///
    /// ```
    /// use tidegate::{Map, SharedLimiter};
    ///
    /// let limiter = SharedLimiter::try_on(&Map::new(), "user", "5/m")?;
    /// limiter.try_set_limit("10/m")?;
    /// assert_eq!(limiter.limit().to_string(), "10/m");
    /// # Ok::<(), tidegate::LimitError>(())
    /// ```
    pub fn try_on<S: Store + Clone + 'static>(
        store: &S,
        name: &str,
        limit: impl TryInto<Limit, Error: Into<LimitError>>,
    ) -> Result<SharedLimiter, LimitError> {
        Ok(SharedLimiter::on(store, name, read(limit)?))
    }

    /// Replaces the limit like [`SharedLimiter::set_limit`]. If the limit is invalid, the old one stays in force.
    pub fn try_set_limit(
        &self,
        limit: impl TryInto<Limit, Error: Into<LimitError>>,
    ) -> Result<(), LimitError> {
        read(limit).map(|limit| self.set_limit(limit))
    }
}

/// Limits as [text](Limit#text-of-a-limit), for example from a request.
impl DynamicLimiter {
    /// Prepares a limit or its [text](Limit#text-of-a-limit) like [`DynamicLimiter::prepare`], or returns an error if
    /// it is invalid.
    pub fn try_prepare(
        &self,
        limit: impl TryInto<Limit, Error: Into<LimitError>>,
    ) -> Result<PreparedLimit, LimitError> {
        read(limit).map(|limit| self.prepare(limit))
    }
}

/// Limits as [text](Limit#text-of-a-limit), for example from a configuration.
impl Shaper {
    /// Creates a shaper like [`Shaper::new`] from a limit or its [text](Limit#text-of-a-limit), or returns an error if
    /// the limit is invalid.
    pub fn try_new(limit: impl TryInto<Limit, Error: Into<LimitError>>) -> Result<Shaper, LimitError> {
        read(limit).map(Shaper::new)
    }

    /// Replaces the limit like [`Shaper::set_limit`]. If the limit is invalid, the old one stays in force.
    pub fn try_set_limit(
        &self,
        limit: impl TryInto<Limit, Error: Into<LimitError>>,
    ) -> Result<(), LimitError> {
        read(limit).map(|limit| self.set_limit(limit))
    }
}

/// Rates as [text](Limit#text-of-a-limit), for example from a configuration.
impl Pacer {
    /// Sets another rate like [`Pacer::set_rate`]. If the rate is invalid, the old one stays in force.
    pub fn try_set_rate(&self, rate: impl TryInto<Rate, Error: Into<LimitError>>) -> Result<(), LimitError> {
        read(rate).and_then(|rate| self.set_rate(rate))
    }
}
