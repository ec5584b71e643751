//! Priority classes of requests, and the share of the limit that is reserved for them.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// The identity of one class of one [`ConcurrencyLimiter`](crate::ConcurrencyLimiter) and its clones.
///
/// A limiter gives out the ids of its classes: [`class_named`](crate::ConcurrencyLimiter::class_named) and
/// [`class_ids`](crate::ConcurrencyLimiter::class_ids). An id of another limiter panics. [`ClassId::FIRST`] is valid
/// for every limiter.
///
/// ```
/// use tidegate::{Class, ClassId, ConcurrencyLimiter};
///
/// let classes = [Class::new("critical").share(50), Class::new("bulk")];
/// let limiter = ConcurrencyLimiter::builder(10).classes(classes).build();
/// let [critical, bulk] = limiter.class_ids();
/// assert_eq!(limiter.class_named("bulk"), Some(bulk));
/// assert_eq!((critical.rank(), bulk.rank()), (0, 1));
/// assert!(limiter.admit(ClassId::FIRST).is_ok_and(|permit| permit.class() == critical));
/// ```
#[derive(Clone, Copy)]
pub struct ClassId {
    /// The number of the list of classes; 0 for any list.
    list: u64,
    rank: usize,
}

impl ClassId {
    /// The first class of any limiter: the most important one, and the only one of a limiter without classes.
    pub const FIRST: ClassId = ClassId { list: 0, rank: 0 };

    /// Returns the rank: 0 is the most important class.
    pub const fn rank(self) -> usize {
        self.rank
    }
}

/// Two ids are equal if they mean the same class of the same limiter. [`ClassId::FIRST`] equals every id of rank 0.
impl PartialEq for ClassId {
    fn eq(&self, other: &ClassId) -> bool {
        self.rank == other.rank && (self.rank == 0 || self.list == other.list)
    }
}

impl Eq for ClassId {}

impl fmt::Debug for ClassId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ClassId({})", self.rank)
    }
}

/// The number of a list of classes, by which a limiter recognizes its own ids.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassList(u64);

impl ClassList {
    /// Returns a number that no other list of this process has.
    pub(super) fn new() -> ClassList {
        static LAST: AtomicU64 = AtomicU64::new(0);
        ClassList(LAST.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the id of the class with this rank.
    pub(super) const fn id(self, rank: usize) -> ClassId {
        ClassId { list: self.0, rank }
    }

    /// Returns the rank of a class of this list. Panics if the id is of another list.
    #[inline]
    #[track_caller]
    pub(super) fn rank(self, id: ClassId) -> usize {
        if id.list != self.0 && id.rank != 0 {
            panic!("class {} of another limiter; use an id that this limiter gives out", id.rank);
        }
        id.rank
    }
}

impl From<&'static str> for Class {
    fn from(name: &'static str) -> Class {
        Class::new(name)
    }
}
