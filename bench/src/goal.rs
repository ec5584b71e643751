//! What was measured for a goal, to be judged at the end of the run.

use crate::rounds::{goal, goal_at_least};

pub(crate) struct Goal {
    name: &'static str,
    measured: f64,
    target: f64,
    aim: f64,
    judge: fn(&str, f64, f64, f64) -> bool,
}

impl Goal {
    pub(crate) fn at_most(name: &'static str, measured: f64, target: f64, aim: f64) -> Goal {
        Goal { name, measured, target, aim, judge: goal }
    }

    pub(crate) fn at_least(name: &'static str, measured: f64, target: f64, aim: f64) -> Goal {
        Goal { name, measured, target, aim, judge: goal_at_least }
    }

    /// Prints how it was met; whether it was.
    pub(crate) fn print(&self) -> bool {
        (self.judge)(self.name, self.measured, self.target, self.aim)
    }
}
