//! Functions that run in place of a denied call.

use tidegate::Denied;
use tidegate_macros::rate_limit;

#[test]
fn a_function_is_called_with_the_same_arguments() {
    #[rate_limit("1/h", otherwise = shorter)]
    fn page(title: String, mut length: usize) -> String {
        length += 1;
        title.repeat(length)
    }
    fn shorter(title: String, length: usize) -> String {
        title + &format!(" x {length}")
    }

    assert_eq!(page("ab".into(), 2), "ababab");
    assert_eq!(page("ab".into(), 2), "ab x 2");
}

#[test]
fn a_closure_gets_the_refusal_and_may_take_the_arguments() {
    #[rate_limit("1/h", key = name, otherwise = |refusal| (name, refusal.retry_after().is_some()))]
    fn visit(name: String) -> (String, bool) {
        (name, false)
    }

    assert_eq!(visit("ana".into()), ("ana".into(), false));
    assert_eq!(visit("ana".into()), ("ana".into(), true));
}

#[test]
fn a_closure_may_say_its_types() {
    #[rate_limit("1/h", otherwise = |_: Denied| -> u64 { 3 })]
    fn typed() -> impl Into<u128> {
        7_u64
    }

    let answers: [u128; 2] = [typed().into(), typed().into()];
    assert_eq!(answers, [7, 3]);
}

#[test]
fn nothing_at_all_may_be_done_instead() {
    use std::cell::Cell;

    #[rate_limit("2/h", otherwise = |_| ())]
    fn log(lines: &Cell<u32>) {
        lines.set(lines.get() + 1);
    }
    #[rate_limit("1/h", otherwise = |refusal| panic!("{refusal}"))]
    fn once() -> u8 {
        1
    }

    let lines = Cell::new(0);
    for _ in 0..5 {
        log(&lines);
    }
    assert_eq!(lines.get(), 2);
    assert_eq!(once(), 1);
    assert!(std::panic::catch_unwind(once).is_err());
}

struct Cache {
    old: u32,
}

impl Cache {
    #[rate_limit("1/h", otherwise = Self::kept)]
    fn fetch(&mut self, new: u32) -> u32 {
        self.old = new;
        new
    }

    fn kept(&mut self, _new: u32) -> u32 {
        self.old
    }

    #[rate_limit("1/h", otherwise = Cache::old)]
    fn into_old(self) -> u32 {
        self.old + 1
    }

    fn old(self) -> u32 {
        self.old
    }
}

#[test]
fn methods_go_on_as_another_method() {
    let mut cache = Cache { old: 1 };
    assert_eq!((cache.fetch(5), cache.fetch(6), cache.old), (5, 5, 5));
    assert_eq!((cache.into_old(), Cache { old: 5 }.into_old()), (6, 5));
}

#[test]
fn a_generic_function_goes_on_as_another_one() {
    #[rate_limit("1/h", otherwise = last)]
    fn first<T: Copy>(all: &[T], none: T) -> T {
        all.first().copied().unwrap_or(none)
    }
    fn last<T: Copy>(all: &[T], none: T) -> T {
        all.last().copied().unwrap_or(none)
    }

    assert_eq!(first(&[1, 2, 3], 0), 1);
    assert_eq!(first(&['a', 'b'], 'c'), 'b');
}
