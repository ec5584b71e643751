use tidegate::Denied;
use tidegate_macros::rate_limit;

struct User {
    id: u64,
}

#[rate_limit("10/s", key = user)]
fn login(user: User) -> Result<u64, Denied> {
    Ok(user.id)
}

#[rate_limit("10/s", key = ("login", user))]
fn login_by_parts(user: User) -> Result<u64, Denied> {
    Ok(user.id)
}

fn main() {}
