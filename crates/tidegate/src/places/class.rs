//! Who is more important: classes of requests, and what is kept free for them.

use std::borrow::Cow;

/// The most classes there may be.
pub(super) const MOST_CLASSES: usize = 64;

/// A class of requests: a name, and the share of all places that is kept free for it.
///
/// ```
/// use tidegate::Class;
///
/// let critical = Class::new("critical").share(50); // half of the places, whoever else wants them
/// assert_eq!((critical.name(), critical.percent()), ("critical", 50));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    name: Cow<'static, str>,
    percent: u8,
}

impl Class {
    /// A class for which nothing is kept free.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Class {
        Class { name: name.into(), percent: 0 }
    }

    /// Keeps so many percent of all places free for it.
    ///
    /// # Panics
    /// If that is more than 100.
    #[must_use]
    pub fn share(self, percent: u8) -> Class {
        assert!(
            percent <= 100,
            "class \"{}\", share {percent}: at most 100 percent can be kept free",
            self.name
        );
        Class { percent, ..self }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The percentage of all places that is kept free for it.
    pub fn percent(&self) -> u8 {
        self.percent
    }

    /// The classes, if there are neither too many nor none, and no more is kept free than there is.
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
