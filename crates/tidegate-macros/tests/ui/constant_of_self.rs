use tidegate::{Limit, Denied};
use tidegate_macros::rate_limit;

struct Account;

impl Account {
    const READS: Limit = Limit::per_second(5);

    #[rate_limit(limit = Self::READS)]
    fn read(&self) -> Result<(), Denied> {
        Ok(())
    }
}

fn main() {}
