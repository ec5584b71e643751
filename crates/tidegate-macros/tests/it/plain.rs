//! Functions and methods of every shape, each with a limit of its own.

use std::fmt::Display;
use std::sync::atomic::{AtomicU32, Ordering};

use tidegate::{Denied, Limit};
use tidegate_macros::rate_limit;

#[test]
fn three_an_hour_pass_and_the_fourth_does_not_run() {
    static RUNS: AtomicU32 = AtomicU32::new(0);

    #[rate_limit("3/h")]
    fn report() -> Result<u32, Denied> {
        Ok(RUNS.fetch_add(1, Ordering::Relaxed))
    }

    let answers: Vec<_> = (0..4).map(|_| report()).collect();
    assert_eq!(answers[..3], [Ok(0), Ok(1), Ok(2)]);
    let refusal = answers[3].expect_err("one too many");
    assert!(refusal.retry_after().is_some_and(|wait| wait.as_secs() > 600));
    assert_eq!(RUNS.load(Ordering::Relaxed), 3);
}

#[test]
fn each_function_has_a_limiter_of_its_own() {
    #[rate_limit("1/h")]
    fn first() -> Result<(), Denied> {
        Ok(())
    }
    #[rate_limit("1/h")]
    fn second() -> Result<(), Denied> {
        Ok(())
    }

    assert!(first().is_ok() && second().is_ok());
    assert!(first().is_err() && second().is_err());
}

#[test]
fn a_constant_says_the_limit() {
    const DAILY: Limit = Limit::per_day(2);

    #[rate_limit(limit = DAILY)]
    fn by_name() -> Result<(), Denied> {
        Ok(())
    }
    #[rate_limit(limit = Limit::per_day(1).burst(3))]
    fn by_expression() -> Result<(), Denied> {
        Ok(())
    }
    #[rate_limit(limit = "4/d")]
    fn by_text() -> Result<(), Denied> {
        Ok(())
    }

    assert_eq!((0..9).filter(|_| by_name().is_ok()).count(), 2);
    assert_eq!((0..9).filter(|_| by_expression().is_ok()).count(), 3);
    assert_eq!((0..9).filter(|_| by_text().is_ok()).count(), 4);
}

#[test]
fn a_heavy_call_spends_its_cost() {
    #[rate_limit("10/h", cost = items.len() as u64)]
    fn upload(items: &[u8]) -> Result<usize, Denied> {
        Ok(items.len())
    }

    assert_eq!(upload(&[1; 6]), Ok(6));
    assert!(upload(&[1; 5]).is_err());
    assert_eq!(upload(&[1; 4]), Ok(4));
    assert!(upload(&[1; 11]).expect_err("more than it can hold").is_impossible());
}

/// The same rule as for the layers of `tidegate-tower`.
#[test]
fn a_call_that_costs_nothing_passes_and_spends_nothing() {
    #[rate_limit("2/h", cost = items.len() as u64)]
    fn upload(items: &[u8]) -> Result<usize, Denied> {
        Ok(items.len())
    }
    #[rate_limit("2/h", key = user, cost = items.len() as u64, wait = "1h")]
    fn store(user: &str, items: &[u8]) -> Result<usize, Denied> {
        Ok(items.len())
    }
    #[rate_limit("1/h concurrency", cost = units)]
    fn nested(units: u64, inner: &dyn Fn() -> bool) -> Result<bool, Denied> {
        Ok(inner())
    }

    assert_eq!((upload(&[]), upload(&[]), upload(&[1; 2])), (Ok(0), Ok(0), Ok(2)));
    assert_eq!((upload(&[]), upload(&[1]).is_err()), (Ok(0), true));
    assert_eq!((store("ana", &[]), store("ana", &[1; 2]), store("ana", &[])), (Ok(0), Ok(2), Ok(0)));
    assert_eq!(nested(1, &|| nested(0, &|| true) == Ok(true)), Ok(true));
    assert_eq!(nested(0, &|| nested(1, &|| true) == Ok(true)), Ok(true));
    assert_eq!(nested(1, &|| nested(1, &|| true).is_err()), Ok(true));
}

#[test]
fn every_algorithm_can_be_named() {
    #[rate_limit("2/h sliding-log")]
    fn logged() -> Result<(), Denied> {
        Ok(())
    }
    #[rate_limit("2/h fixed-window align first-hit")]
    fn windowed() -> Result<(), Denied> {
        Ok(())
    }
    #[rate_limit("1/h leaky-bucket queue 5")]
    fn queued() -> Result<(), Denied> {
        Ok(())
    }
    #[rate_limit("1/h pacer")]
    fn paced() -> Result<(), Denied> {
        Ok(())
    }

    assert_eq!((0..5).filter(|_| logged().is_ok()).count(), 2);
    assert_eq!((0..5).filter(|_| windowed().is_ok()).count(), 2);
    assert_eq!((0..5).filter(|_| queued().is_ok()).count(), 1);
    assert_eq!((0..5).filter(|_| paced().is_ok()).count(), 1);
}

#[test]
fn so_many_at_a_time_come_back_when_the_function_ends() {
    #[rate_limit("2/h concurrency")]
    fn nested(depth: u32) -> Result<u32, Denied> {
        if depth == 0 { Ok(0) } else { nested(depth - 1).map(|inner| inner + 1) }
    }
    #[rate_limit("1/h concurrency", key = user)]
    fn each(user: &str, then: &dyn Fn() -> bool) -> Result<bool, Denied> {
        Ok(then())
    }

    for _ in 0..3 {
        assert_eq!(nested(1), Ok(1));
        assert!(nested(2).is_err());
    }
    let again = |user: &'static str| move || each(user, &|| true).is_ok();
    assert_eq!(each("ana", &again("ana")), Ok(false));
    assert_eq!(each("ana", &again("bob")), Ok(true));
    assert_eq!(each("ana", &|| true), Ok(true));
}

#[test]
fn all_instances_of_a_generic_function_share_one_limiter() {
    #[rate_limit("3/h", key = name)]
    fn show<'n, T, const N: usize>(
        name: &'n str,
        _: &str,
        things: [T; N],
    ) -> Result<(&'n str, String), Denied>
    where
        T: Display,
    {
        Ok((name, things.into_iter().map(|thing| thing.to_string()).collect()))
    }

    assert_eq!(show("ana", "", [1_u8, 2]), Ok(("ana", "12".into())));
    assert_eq!(show("ana", "", ["x"]), Ok(("ana", "x".into())));
    assert!(show("ana", "", [2.5]).is_ok());
    assert!(show("ana", "", [1_u8, 2]).is_err());
    assert!(show("bob", "", [1_u8, 2]).is_ok());
}

#[test]
fn arguments_may_be_of_any_type_that_is_some_trait() {
    #[rate_limit("1/h", key = id)]
    fn count(
        id: impl Into<u64> + Copy + tidegate::KeyPart,
        items: impl Iterator<Item = u8>,
    ) -> Result<u64, Denied> {
        Ok(id.into() + items.map(u64::from).sum::<u64>())
    }
    #[rate_limit("1/h")]
    fn odd(most: u8) -> Result<impl Iterator<Item = u8>, Denied> {
        Ok((0..most).filter(|number| number % 2 == 1))
    }

    assert_eq!(count(7_u32, [1, 2].into_iter()), Ok(10));
    assert!(count(7_u8, [1, 2].into_iter()).is_err(), "a number is its digits");
    assert_eq!(odd(6).map(Iterator::collect), Ok(vec![1, 3, 5]));
    assert!(odd(6).is_err());
}

struct Account {
    id: u64,
    visits: u32,
}

trait Billing {
    fn bill(&self) -> Result<u64, Denied>;

    #[rate_limit("2/h")]
    fn remind(&self) -> Result<&'static str, Denied> {
        Ok("please pay")
    }
}

impl Billing for Account {
    #[rate_limit("1/h", key = self.id)]
    fn bill(&self) -> Result<u64, Denied> {
        Ok(self.id)
    }
}

impl Billing for u64 {
    fn bill(&self) -> Result<u64, Denied> {
        Ok(*self)
    }
}

impl Account {
    const fn new(id: u64) -> Account {
        Account { id, visits: 0 }
    }

    #[rate_limit("1/h", key = self.id)]
    fn read(&self) -> Result<u64, Denied> {
        Ok(self.id)
    }

    #[rate_limit("2/h", key = (self.id, "visit"))]
    fn visit(&mut self, times: u32) -> Result<u32, Denied> {
        self.visits += times;
        Ok(self.visits)
    }

    #[rate_limit("1/h", key = self.id)]
    fn close(self) -> Result<Account, Denied> {
        Ok(self)
    }

    #[rate_limit("1/h", key = self.id)]
    fn keep(self: std::sync::Arc<Self>) -> Result<u64, Denied> {
        Ok(self.id)
    }

    #[rate_limit("1/h")]
    fn open(id: u64) -> Result<Self, Denied> {
        Ok(Self::new(id))
    }
}

#[test]
fn methods_are_held_by_what_they_are_called_on() {
    let (mut ana, bob) = (Account::new(1), Account::new(2));
    assert_eq!((ana.read(), bob.read()), (Ok(1), Ok(2)));
    assert!(ana.read().is_err());
    assert_eq!((ana.visit(2), ana.visit(3)), (Ok(2), Ok(5)));
    assert!(ana.visit(1).is_err());
    assert_eq!(ana.visits, 5);
    assert!(ana.close().is_ok() && Account::new(1).close().is_err() && bob.close().is_ok());
    let (first, second) = (Account::new(3), Account::new(3));
    assert!(std::sync::Arc::new(first).keep().is_ok() && std::sync::Arc::new(second).keep().is_err());
    assert!(Account::open(4).is_ok() && Account::open(5).is_err());
}

#[test]
fn methods_of_traits_are_held_where_they_have_a_body() {
    let account = Account::new(9);
    assert_eq!(account.bill(), Ok(9));
    assert!(account.bill().is_err());
    assert!(9_u64.bill().is_ok() && 9_u64.bill().is_ok());
    assert!(account.remind().is_ok() && 9_u64.remind().is_ok());
    assert!(8_u64.remind().is_err(), "a body has one limiter, whatever it is called on");
}

/// Functions with qualifiers before and after `fn`.
mod qualified {
    use super::rate_limit;

    #[must_use = "kept"]
    #[inline]
    #[rate_limit("1/h", otherwise = |_| 0)]
    pub(super) extern "C" fn foreign(number: u32) -> u32 {
        #![allow(clippy::let_and_return)]
        let same = number;
        same
    }
}

#[test]
fn what_stands_around_a_function_is_kept() {
    let foreign: extern "C" fn(u32) -> u32 = qualified::foreign;
    assert_eq!((foreign(7), foreign(7)), (7, 0));
}
