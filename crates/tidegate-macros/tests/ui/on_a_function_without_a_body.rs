use tidegate::Denied;
use tidegate_macros::rate_limit;

trait Report {
    #[rate_limit("10/s")]
    fn write(&self) -> Result<(), Denied>;
}

fn main() {}
