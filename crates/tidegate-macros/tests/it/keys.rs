//! Keys of any type that implements `IntoKey`, by reference.

use std::net::IpAddr;
use std::sync::Mutex;

use tidegate::{Denied, Key};
use tidegate_macros::rate_limit;

#[test]
fn each_key_has_its_own_share() {
    #[rate_limit("2/h", key = user)]
    fn login(user: &str) -> Result<(), Denied> {
        let _ = user;
        Ok(())
    }

    let passed = ["ana", "ana", "bob", "ana", "bob", "bob"].map(|user| login(user).is_ok());
    assert_eq!(passed, [true, true, true, false, true, false]);
}

#[test]
fn an_owned_argument_is_borrowed_and_still_there_in_the_body() {
    #[rate_limit("1/h", key = (user, address))]
    fn login(user: String, address: IpAddr) -> Result<String, Denied> {
        Ok(user + "@" + &address.to_string())
    }

    let localhost = IpAddr::from([127, 0, 0, 1]);
    assert_eq!(login("ana".to_owned(), localhost), Ok("ana@127.0.0.1".to_owned()));
    assert!(login("ana".to_owned(), localhost).is_err());
    assert!(login("ana".to_owned(), IpAddr::from([127, 0, 0, 2])).is_ok());
}

#[test]
fn parts_do_not_run_into_each_other() {
    #[rate_limit("1/h", key = (first, second))]
    fn pair(first: &str, second: &str) -> Result<usize, Denied> {
        Ok(first.len() + second.len())
    }

    assert!(pair("a:b", "c").is_ok() && pair("a", "b:c").is_ok() && pair("a:b", "c").is_err());
}

#[test]
fn a_key_may_be_built_by_the_caller_or_in_place() {
    #[rate_limit("1/h", key = key)]
    fn owned(key: Key) -> Result<Key, Denied> {
        Ok(key)
    }
    #[rate_limit("1/h", key = key)]
    fn borrowed(key: &Key) -> Result<usize, Denied> {
        Ok(key.as_bytes().len())
    }
    #[rate_limit("1/h", key = name.to_lowercase())]
    fn computed(name: &str) -> Result<usize, Denied> {
        Ok(name.len())
    }
    #[rate_limit("1/h", key = name[..1])]
    fn sliced(name: &str) -> Result<usize, Denied> {
        Ok(name.len())
    }
    #[rate_limit("1/h", key = account(number))]
    fn from_a_function(number: u64) -> Result<u64, Denied> {
        Ok(number)
    }
    fn account(number: u64) -> (&'static str, u64) {
        ("account", number / 10)
    }

    let key = Key::new(("ana", 7_u8));
    assert!(owned(key.clone()).is_ok() && owned(key.clone()).is_err());
    assert!(borrowed(&key).is_ok() && borrowed(&key).is_err());
    assert!(computed("Ana").is_ok() && computed("ANA").is_err());
    assert!(sliced("ana").is_ok() && sliced("alf").is_err() && sliced("bob").is_ok());
    assert!(from_a_function(11).is_ok() && from_a_function(19).is_err() && from_a_function(20).is_ok());
}

#[test]
fn a_key_may_fail_and_then_nothing_is_spent() {
    #[derive(Debug, PartialEq)]
    enum Failure {
        NoName,
        Refused,
    }
    impl From<Denied> for Failure {
        fn from(_: Denied) -> Failure {
            Failure::Refused
        }
    }

    #[rate_limit("1/h", key = name.ok_or(Failure::NoName)?)]
    fn greet(name: Option<&str>) -> Result<usize, Failure> {
        Ok(name.map_or(0, str::len))
    }

    assert_eq!(greet(None), Err(Failure::NoName));
    assert_eq!(greet(Some("ana")), Ok(3));
    assert_eq!(greet(Some("ana")), Err(Failure::Refused));
}

#[test]
fn what_is_locked_for_a_key_is_free_again_in_the_body_and_otherwise() {
    #[rate_limit("1/h", key = *shared.lock().unwrap(), otherwise = instead)]
    fn use_it(shared: &Mutex<u64>) -> u64 {
        *shared.try_lock().expect("free again")
    }
    fn instead(shared: &Mutex<u64>) -> u64 {
        *shared.try_lock().expect("free again") + 1
    }

    let shared = Mutex::new(5);
    assert_eq!((use_it(&shared), use_it(&shared)), (5, 6));
}
