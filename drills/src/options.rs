//! How much of a drill is done, and by which random numbers.

use conformance::random::Random;

/// What follows the name of a drill.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Options {
    /// All counts are multiplied by this.
    pub(crate) scale: f64,
    pub(crate) seed: u64,
    /// How many rounds, times or seconds, whatever the drill counts.
    pub(crate) count: Option<u64>,
    /// Whether a picture is drawn into `docs`.
    pub(crate) plot: bool,
    /// The only part that is done, of a drill that has parts.
    pub(crate) part: Option<&'static str>,
}

impl Options {
    /// Reads `--scale F`, `--seed S` and, for a drill that counts something, `--rounds N` or what it is called there;
    /// for one that draws, `--plot`; for one that has parts, `--part NAME`.
    pub(crate) fn parse(
        arguments: &[String],
        unit: Option<&str>,
        parts: &[&'static str],
    ) -> Result<Options, String> {
        let seed_of_all = Random::seed_from_environment();
        let mut options = Options { scale: 1.0, seed: seed_of_all, count: None, plot: false, part: None };
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
                "--plot" if Some(name) == unit => options.plot = true,
                "--part" if !parts.is_empty() => options.part = Some(part(parts, value())?),
                _ if Some(name) == unit => options.count = Some(count(name, value())?),
                _ => {
                    let third = unit.map(|unit| match unit {
                        "--plot" => format!(" or {unit}"),
                        _ => format!(" or {unit} N"),
                    });
                    let third = third.unwrap_or_default();
                    return Err(format!("unknown option \"{argument}\"; write --scale F, --seed S{third}"));
                }
            }
        }
        Ok(options)
    }

    /// What the command line says that is to be done, or so many at scale 1.
    pub(crate) fn counted(&self, count: u64) -> u64 {
        self.count.unwrap_or_else(|| self.scaled(count))
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

fn count(name: &str, text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| (1..=1_000_000_000).contains(count));
    count.ok_or_else(|| format!("{name} \"{text}\" is not a whole number from 1 to 1000000000"))
}

fn part(parts: &[&'static str], text: &str) -> Result<&'static str, String> {
    let part = parts.iter().copied().find(|part| *part == text);
    part.ok_or_else(|| format!("--part \"{text}\" is none of {}", parts.join(", ")))
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("--seed \"{text}\" is not a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words, Some("--rounds"), &[])
    }

    #[test]
    fn options_may_be_attached_or_apart() {
        let expected = Options { scale: 0.5, seed: 7, count: None, plot: false, part: None };
        assert_eq!(parse("--scale 0.5 --seed=7"), Ok(expected));
        assert_eq!(parse("--seed 7 --scale=0.5"), Ok(expected));
        assert_eq!(parse("").unwrap().scale, 1.0);
    }

    #[test]
    fn what_is_not_understood_is_said() {
        for line in [
            "--scale",
            "--scale 0",
            "--scale -1",
            "--scale NaN",
            "--scale much",
            "--seed x",
            "--round 5",
            "--rounds 0",
            "--rounds many",
            "--times 5",
            "--plot",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn only_a_drill_that_draws_takes_plot() {
        let words = ["--plot".to_owned(), "--seed=3".to_owned()];
        let draws = Options::parse(&words, Some("--plot"), &[]).unwrap();
        assert_eq!((draws.plot, draws.seed), (true, 3));
        assert!(!parse("").unwrap().plot);
    }

    #[test]
    fn only_a_drill_that_has_parts_takes_one() {
        let chosen = |part: &str| Options::parse(&[format!("--part={part}")], None, &["one", "two"]);
        assert_eq!(chosen("two").unwrap().part, Some("two"));
        assert!(chosen("three").is_err() && parse("--part one").is_err());
    }

    #[test]
    fn a_scaled_count_is_at_least_one() {
        let options = Options { scale: 0.001, seed: 0, count: None, plot: false, part: None };
        assert_eq!((options.scaled(100_000), options.scaled(10)), (100, 1));
    }

    #[test]
    fn what_is_to_be_done_may_be_said() {
        assert_eq!(parse("--rounds 3").unwrap().counted(50), 3);
        assert_eq!(parse("--rounds=3 --scale 2").unwrap().scaled(50), 100);
        assert_eq!(parse("--scale 2").unwrap().counted(50), 100);
    }
}
