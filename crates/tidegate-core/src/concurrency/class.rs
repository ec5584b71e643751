//! Priority classes of requests, and the share of the limit that is reserved for them.

use std::borrow::Cow;

/// The largest number of classes.
pub(super) const MOST_CLASSES: usize = 64;

/// A priority class of requests: a name, and the share of the limit that is reserved for it.
///
/// ```
/// use tidegate::Class;
///
/// let critical = Class::new("critical").share(50); // half of the slots are reserved
/// assert_eq!((critical.name(), critical.percent()), ("critical", 50));
/// ```
#[doc(alias("priority", "criticality", "tier"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    name: Cow<'static, str>,
    percent: u8,
}

impl Class {
    /// Creates a class with no reserve.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Class {
        Class { name: name.into(), percent: 0 }
    }

    /// Reserves this percentage of the limit for the class.
    ///
    /// # Panics
    /// If `percent` is more than 100.
    #[must_use]
    pub fn share(self, percent: u8) -> Class {
        assert!(
            percent <= 100,
            "class \"{}\", share {percent}: at most 100 percent can be kept free",
            self.name
        );
        Class { percent, ..self }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the percentage of the limit that is reserved for the class.
    pub fn percent(&self) -> u8 {
        self.percent
    }

    /// Returns the classes, after a check of their number and of the sum of their shares. Panics if either is out
    /// of range.
    pub(super) fn valid(classes: Vec<Class>) -> Vec<Class> {
        let count = classes.len();
        assert!(0 < count && count <= MOST_CLASSES, "{count} classes: there may be 1 to {MOST_CLASSES}");
        let sum: u32 = classes.iter().map(|class| u32::from(class.percent)).sum();
        assert!(sum <= 100, "shares of {sum} percent: all classes together can have at most 100");
        classes
    }
}

impl From<&'static str> for Class {
    fn from(name: &'static str) -> Class {
        Class::new(name)
    }
}
