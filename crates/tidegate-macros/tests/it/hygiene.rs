//! Names of the attribute and names of the user never collide.

#![deny(warnings, clippy::all, clippy::pedantic)]

use tidegate_macros::rate_limit;

/// Redefinitions of every short name that the expansion could use.
mod shadowed {
    #![allow(dead_code, non_camel_case_types, reason = "only the names matter")]

    use super::rate_limit;

    pub(super) struct Result;
    pub(super) struct Err;
    pub(super) struct Ok;
    pub(super) struct Limiter;
    pub(super) struct LazyLock;
    pub(super) mod std {}
    pub(super) mod core {}
    pub(super) mod tidegate {}
    pub(super) trait From {}

    type Answer = ::core::result::Result<u32, ::tidegate::Denied>;

    #[rate_limit("1/h", key = key)]
    pub(super) fn by_key(key: u32) -> Answer {
        ::core::result::Result::Ok(key)
    }

    #[rate_limit("1/h", wait = "1ms", otherwise = |refusal| u32::from(refusal.is_impossible()))]
    pub(super) fn waiting() -> u32 {
        1
    }
}

#[test]
fn shadowed_names_change_nothing() {
    assert!(shadowed::by_key(1).is_ok() && shadowed::by_key(1).is_err());
    assert_eq!((shadowed::waiting(), shadowed::waiting()), (1, 0));
}

#[test]
fn arguments_may_be_called_as_anything_in_the_expansion() {
    #[rate_limit("1/h", key = (limiter, key, cost, asked, turn), cost = passed, wait = "1ms", otherwise = sum)]
    fn named(limiter: u64, key: u64, cost: u64, asked: u64, turn: u64, passed: u64, refusal: u64) -> u64 {
        limiter + key + cost + asked + turn + passed + refusal
    }
    fn sum(limiter: u64, key: u64, cost: u64, asked: u64, turn: u64, passed: u64, refusal: u64) -> u64 {
        1_000 + limiter + key + cost + asked + turn + passed + refusal
    }

    assert_eq!(named(1, 2, 3, 4, 5, 1, 7), 23);
    assert_eq!(named(1, 2, 3, 4, 5, 1, 7), 1_023);
}

#[test]
fn the_body_sees_nothing_of_the_expansion() {
    const LIMITER: u32 = 5;

    #[rate_limit("1/h", otherwise = |_| 0)]
    fn look() -> u32 {
        LIMITER
    }
    #[rate_limit("1/h", otherwise = |_| -1)]
    fn negative() -> i32 {
        -5
    }
    #[rate_limit("1/h", otherwise = |_| ())]
    fn nothing() {}

    assert_eq!((look(), look(), negative(), negative()), (5, 0, -5, -1));
    nothing();
}

#[test]
fn what_is_borrowed_already_may_be_borrowed_again() {
    #[rate_limit("1/h", key = &name, wait = "1ms", cost = 1)]
    async fn one(name: String) -> Result<String, tidegate::Denied> {
        Ok(name)
    }
    #[rate_limit("1/h", key = (&name, name.as_str(), name, 7, "login"))]
    fn several(name: String) -> Result<String, tidegate::Denied> {
        Ok(name)
    }

    assert!(smol::block_on(one("ana".into())).is_ok() && smol::block_on(one("ana".into())).is_err());
    assert!(several("ana".into()).is_ok() && several("ana".into()).is_err());
}

#[test]
fn a_function_may_be_made_by_a_macro_that_is_given_its_pieces() {
    macro_rules! held {
        ($limit:literal, $key:expr, $visibility:vis fn $name:ident($argument:ident: $type:ty) -> $output:ty $body:block) => {
            #[rate_limit($limit, key = $key)]
            $visibility fn $name($argument: $type) -> $output $body
        };
    }
    macro_rules! twice_wrapped {
        ($body:block) => {
            held!("1/h", name, fn named(name: u8) -> Result<u8, tidegate::Denied> $body);
        };
    }
    held!(
        "1/h",
        user,
        pub(crate) fn direct(user: &str) -> Result<usize, tidegate::Denied> {
            Ok(user.len())
        }
    );
    twice_wrapped!({ Ok(7) });

    assert!(direct("ana").is_ok_and(|length| length == 3) && direct("ana").is_err() && direct("bob").is_ok());
    assert!(named(1).is_ok_and(|seven| seven == 7) && named(1).is_err() && named(2).is_ok());
}
