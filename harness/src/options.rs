//! The options of drills, and the sections of benches.

use std::process::ExitCode;

use crate::report::Goal;
use crate::stopwatch::Stopwatch;

/// What follows the name of a drill.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// All counts are multiplied by this.
    pub scale: f64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// How many rounds, times or seconds, whatever the drill counts.
    pub count: Option<u64>,
    /// Whether a picture is drawn into `docs`.
    pub plot: bool,
    /// The only part that is done, of a drill that has parts.
    pub part: Option<&'static str>,
}

impl Options {
    /// Returns everything at scale 1, by this seed.
    pub fn new(seed: u64) -> Options {
        Options { scale: 1.0, seed, count: None, plot: false, part: None }
    }

    /// Reads `--scale F`, `--seed S` and, for a drill that counts something, `--rounds N` or what it is called there;
    /// for one that draws, `--plot`; for one that has parts, `--part NAME`.
    pub fn parse(
        mut self,
        arguments: &[String],
        unit: Option<&str>,
        parts: &[&'static str],
    ) -> Result<Options, String> {
        let mut rest = arguments.iter().flat_map(|argument| {
            let (name, value) = argument
                .split_once('=')
                .map_or((argument.as_str(), None), |(name, value)| (name, Some(value)));
            [Some(name), value].into_iter().flatten()
        });
        while let Some(name) = rest.next() {
            let mut value = || rest.next().unwrap_or_default();
            match name {
                "--scale" => {
                    self.scale = read(name, value(), "a number above 0 and up to 1000", |scale| {
                        *scale > 0.0 && *scale <= 1000.0
                    })?;
                }
                "--seed" => self.seed = read(name, value(), "a whole number", |_| true)?,
                "--plot" if Some(name) == unit => self.plot = true,
                "--part" if !parts.is_empty() => {
                    let (text, known) = (value(), parts.join(", "));
                    let part = parts.iter().copied().find(|part| *part == text);
                    self.part = Some(part.ok_or_else(|| format!("--part \"{text}\" is none of {known}"))?);
                }
                _ if Some(name) == unit => {
                    let count = read(name, value(), "a whole number from 1 to 1000000000", |count| {
                        (1..=1_000_000_000).contains(count)
                    })?;
                    self.count = Some(count);
                }
                _ => {
                    let third =
                        unit.map(|unit| format!(" or {unit}{}", if unit == "--plot" { "" } else { " N" }));
                    let third = third.unwrap_or_default();
                    return Err(format!("unknown option \"{name}\"; write --scale F, --seed S{third}"));
                }
            }
        }
        Ok(self)
    }

    /// Returns the count that the command line says, or this many at scale 1.
    pub fn counted(&self, count: u64) -> u64 {
        self.count.unwrap_or_else(|| self.scaled(count))
    }

    /// Returns this many at scale 1, at least one.
    pub fn scaled(&self, count: u64) -> u64 {
        ((count as f64 * self.scale) as u64).max(1)
    }
}

fn read<T: std::str::FromStr>(
    name: &str,
    text: &str,
    what: &str,
    is_fine: impl Fn(&T) -> bool,
) -> Result<T, String> {
    text.parse().ok().filter(is_fine).ok_or_else(|| format!("{name} \"{text}\" is not {what}"))
}

/// A part of a bench: its name, what it does, and how.
pub type Section<C> = (&'static str, &'static str, fn(&C) -> Result<Vec<Goal>, String>);

/// The sections that were asked for: all, if none is named.
#[derive(Debug, Default)]
pub struct Sections {
    flags: Vec<String>,
    names: Vec<String>,
}

impl Sections {
    /// Reads names of sections and these flags; the error is the usage.
    pub fn read<C>(
        bench: &str,
        arguments: &[&str],
        known: &[Section<C>],
        flags: &[&str],
    ) -> Result<Sections, String> {
        let mut read = Sections::default();
        for argument in arguments {
            if flags.contains(argument) {
                read.flags.push((*argument).to_owned());
            } else if known.iter().any(|(name, ..)| name == argument) {
                read.names.push((*argument).to_owned());
            } else {
                let flags: String = flags.iter().map(|flag| format!(" [{flag}]")).collect();
                let names: Vec<_> = known.iter().map(|(name, ..)| *name).collect();
                return Err(format!("usage: {bench}{flags} [{}]...", names.join(" | ")));
            }
        }
        Ok(read)
    }

    /// Returns whether a flag was given.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    /// Runs the sections that were asked for, then prints a line per goal. The exit code is 0 if all of them were met.
    pub fn run<C>(&self, bench: &str, sections: &[Section<C>], context: &C) -> ExitCode {
        let watch = Stopwatch::start();
        let (mut goals, mut is_failed) = (Vec::new(), false);
        for (name, what, section) in sections {
            if !self.names.is_empty() && !self.names.iter().any(|asked| asked == name) {
                continue;
            }
            eprintln!("{bench} {name}: {what} ({} s)", watch.elapsed().as_secs());
            match section(context) {
                Ok(reached) => goals.extend(reached),
                Err(problem) => {
                    eprintln!("{bench} {name} failed: {problem}");
                    is_failed = true;
                }
            }
        }
        eprintln!("{bench}: done ({} s)", watch.elapsed().as_secs());
        let met = Goal::print_all(&goals);
        ExitCode::from(u8::from(is_failed || !met))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        Options::new(0).parse(&words, Some("--rounds"), &[])
    }

    #[test]
    fn options_may_be_attached_or_apart() {
        let expected = Options { scale: 0.5, ..Options::new(7) };
        assert_eq!(parse("--scale 0.5 --seed=7"), Ok(expected));
        assert_eq!(parse("--seed 7 --scale=0.5"), Ok(expected));
        assert_eq!(parse(""), Ok(Options::new(0)));
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
            "--part one",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn only_a_drill_that_draws_takes_plot_and_only_one_that_has_parts_takes_one() {
        let words = ["--plot".to_owned(), "--seed=3".to_owned()];
        let draws = Options::new(0).parse(&words, Some("--plot"), &[]).unwrap();
        assert_eq!((draws.plot, draws.seed), (true, 3));
        let chosen = |part: &str| Options::new(0).parse(&[format!("--part={part}")], None, &["one", "two"]);
        assert_eq!(chosen("two").unwrap().part, Some("two"));
        assert!(chosen("three").is_err());
    }

    #[test]
    fn a_count_is_said_or_scaled_and_at_least_one() {
        let options = Options { scale: 0.001, ..Options::new(0) };
        assert_eq!((options.scaled(100_000), options.scaled(10)), (100, 1));
        assert_eq!(parse("--rounds 3").unwrap().counted(50), 3);
        assert_eq!(parse("--rounds=3 --scale 2").unwrap().scaled(50), 100);
        assert_eq!(parse("--scale 2").unwrap().counted(50), 100);
    }

    #[test]
    fn without_names_all_sections_run_and_what_is_not_known_is_refused() {
        let failing: fn(&()) -> _ = |()| Err("broken".to_owned());
        let known: [Section<()>; 2] = [("hot", "", |()| Ok(Vec::new())), ("cold", "", failing)];
        let read = |words: &[&str]| Sections::read("zone", words, &known, &["--plot"]);
        assert_eq!(read(&["--plot"]).unwrap().run("zone", &known, &()), ExitCode::FAILURE);
        assert_eq!(read(&["hot"]).unwrap().run("zone", &known, &()), ExitCode::SUCCESS);
        assert!(read(&["--plot"]).unwrap().has("--plot") && !read(&[]).unwrap().has("--plot"));
        assert_eq!(read(&["--plod"]).unwrap_err(), "usage: zone [--plot] [hot | cold]...");
    }
}
