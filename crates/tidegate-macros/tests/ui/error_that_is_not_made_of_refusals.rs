use tidegate_macros::rate_limit;

#[derive(Debug)]
enum LoginError {
    WrongPassword,
}

#[rate_limit("10/s", key = user)]
fn login(user: &str) -> Result<(), LoginError> {
    if user.is_empty() { Err(LoginError::WrongPassword) } else { Ok(()) }
}

fn main() {}
