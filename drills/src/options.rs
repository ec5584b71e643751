//! How much of a drill is done, and by which random numbers.

use conformance::random::Random;

/// What follows the name of a drill.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Options {
    /// All counts are multiplied by this.
    pub(crate) scale: f64,
    pub(crate) seed: u64,
}

impl Options {
    /// Reads `--scale F` and `--seed S`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options { scale: 1.0, seed: Random::seed_from_environment() };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, attached) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument.as_str(), None),
            };
            let mut value = || attached.or_else(|| rest.next().map(String::as_str)).unwrap_or_default();
            match name {
                "--scale" => options.scale = scale(value())?,
                "--seed" => options.seed = seed(value())?,
                _ => return Err(format!("unknown option \"{argument}\"; write --scale F or --seed S")),
            }
        }
        Ok(options)
    }

    /// So many at scale 1, at least one.
    pub(crate) fn scaled(&self, count: u64) -> u64 {
        ((count as f64 * self.scale) as u64).max(1)
    }
}

fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| *scale > 0.0 && *scale <= 1000.0);
    scale.ok_or_else(|| format!("--scale \"{text}\" is not a number above 0 and up to 1000"))
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("--seed \"{text}\" is not a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_may_be_attached_or_apart() {
        let expected = Options { scale: 0.5, seed: 7 };
        assert_eq!(parse("--scale 0.5 --seed=7"), Ok(expected));
        assert_eq!(parse("--seed 7 --scale=0.5"), Ok(expected));
        assert_eq!(parse("").unwrap().scale, 1.0);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for line in
            ["--scale", "--scale 0", "--scale -1", "--scale NaN", "--scale much", "--seed x", "--round 5"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_scaled_count_is_at_least_one() {
        let options = Options { scale: 0.001, seed: 0 };
        assert_eq!((options.scaled(100_000), options.scaled(10)), (100, 1));
    }
}
