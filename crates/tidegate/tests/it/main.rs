//! Programs as a new user writes them, with the facade as their only dependency of this workspace.

use tidegate::{Denied, rate_limit};

#[rate_limit("2/h", key = user)]
fn reset_password(user: &str) -> Result<String, Denied> {
    Ok(format!("a letter to {user}"))
}

#[test]
fn the_attribute_needs_no_other_crate() {
    assert_eq!(reset_password("ana").as_deref(), Ok("a letter to ana"));
    assert!(reset_password("ana").is_ok());
    assert!(reset_password("ana").is_err_and(|denied| denied.retry_after().is_some()));
    assert!(reset_password("bob").is_ok());
}
