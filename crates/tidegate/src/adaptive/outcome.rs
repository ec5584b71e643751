//! How an admitted call ended, as far as that says something about load.

/// How an admitted call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was answered; how long that took counts.
    Done,
    /// It failed for a reason that says nothing about load, such as an HTTP 500.
    Failed,
    /// It was refused or came too late for want of capacity: a 503, a time-out.
    Overloaded,
    /// It says nothing: the caller went away, or was refused for its own doing.
    Ignored,
}
