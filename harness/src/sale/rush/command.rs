//! The command line of a rush: its options, what is seen while it runs, and what is said in the end.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum, value_parser};
use indicatif::{ProgressBar, ProgressStyle};
use tidegate::{Algorithm, Limit};

use super::{Combination, Figures, Limiter, Plan, Progress, Report, Surroundings, run, text};
use crate::Folder;
use crate::sale::Ledger;

/// Lets a crowd loose on the shop, and compares strategies with and without the limiter.
///
/// Every combination is a fresh sale and a shop in a process of its own; the crowd is this process.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Pieces of each sale.
    #[arg(long, default_value_t = 100, allow_negative_numbers = true, value_parser = value_parser!(u32).range(1..=1_000_000))]
    stock: u32,
    /// Who come, each for one piece.
    #[arg(long, default_value_t = 10_000, allow_negative_numbers = true, value_parser = value_parser!(u32).range(1..=16_000_000))]
    buyers: u32,
    /// `all`, or names with commas between them: naive, value, version, conditional, pessimistic, redis.
    #[arg(long, default_value = "all")]
    pub strategy: String,
    /// With the limiter, without, or both.
    #[arg(long, default_value = "both")]
    limiter: Sides,
    /// How often a buyer tries at most.
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
    tries: u32,
    /// Connections on which buyers come.
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u32).range(1..=20_000))]
    clients: u32,
    /// Connections of a shop to its database.
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u32).range(1..=1000))]
    connections: u32,
    /// The limiter's token bucket, such as "500/s burst 50"; without it, it is measured what suits the database.
    #[arg(long, value_parser = bucket)]
    rate: Option<Limit>,
    /// The database; without it, SQLite in a folder that is removed afterwards.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database: Option<String>,
    /// Redis, for the strategy of this name.
    #[arg(long, env = "REDIS_URL", hide_env_values = true)]
    redis: Option<String>,
    /// The folder for the table, the pictures and the report.
    #[arg(long, default_value = "rush-report")]
    out: PathBuf,
    /// Who is first in line.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Arguments {
    /// Returns the rush on the shops of this program by these strategies. Where no database is named, it is SQLite in
    /// this folder.
    pub fn plan(&self, program: PathBuf, folder: &Folder, strategies: &[&'static str]) -> Plan {
        let in_folder = || format!("sqlite:{}", folder.file("shop.db").display());
        Plan {
            redis: self.redis.clone(),
            stock: self.stock,
            buyers: self.buyers,
            tries: self.tries,
            clients: self.clients,
            connections: self.connections,
            limit: self.rate,
            limiters: self.limiter.limiters(),
            seed: self.seed,
            ..Plan::new(program, self.database.clone().unwrap_or_else(in_folder), strategies)
        }
    }

    /// Runs a plan and writes its report. The exit code is 0 if every safe strategy kept its books.
    pub async fn run(&self, plan: &Plan, ledger: &impl Ledger) -> Result<ExitCode, String> {
        if plan.buyers < plan.stock {
            println!("{} buyers for {} pieces: some will be left", plan.buyers, plan.stock);
        }
        let mut screen = Screen::new(plan);
        let figures = run(plan, ledger, |progress| screen.show(progress)).await?;
        screen.bar.finish_and_clear();
        let (version, now) = (ledger.version().await?, ledger.now().await?);
        let report = Report::new(Surroundings::of(plan, version, now, screen.rate), figures);
        report.write(&self.out)?;
        Ok(conclude(&report, &self.out))
    }
}

/// On which sides of the limiter.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sides {
    Both,
    On,
    Off,
}

impl Sides {
    fn limiters(self) -> Vec<Limiter> {
        match self {
            Sides::Both => Limiter::ALL.to_vec(),
            Sides::On => vec![Limiter::On],
            Sides::Off => vec![Limiter::Off],
        }
    }
}

fn bucket(text: &str) -> Result<Limit, String> {
    let limit: Limit = text.parse().map_err(|wrong: tidegate::LimitError| wrong.to_string())?;
    match limit.algorithm() {
        Algorithm::TokenBucket => Ok(limit),
        other => {
            Err(format!("limit \"{text}\": {other} is no token bucket; write such as \"500/s burst 50\""))
        }
    }
}

/// Prints what was found. Goals that are missed are a finding, books that are wrong are a failure.
fn conclude(report: &Report, out: &Path) -> ExitCode {
    println!("\n{}", text(&report.figures));
    for goal in &report.goals {
        println!("{goal}");
    }
    let broken: Vec<&Figures> = report.figures.iter().filter(|figures| !figures.is_as_promised()).collect();
    for figures in &broken {
        println!(
            "broken: {}: sold {} of {}, oversold {}, duplicates {}, lost {}",
            Combination { strategy: figures.strategy, limiter: figures.limiter },
            figures.sold,
            figures.stock,
            figures.oversold,
            figures.duplicates,
            figures.lost
        );
    }
    println!("\nreport: {}", out.join("report.html").display());
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What is seen while it runs.
struct Screen {
    bar: ProgressBar,
    combinations: usize,
    number: usize,
    /// Tries of one combination.
    tries: u64,
    /// Where the rate comes from.
    rate: String,
}

impl Screen {
    fn new(plan: &Plan) -> Screen {
        let (combinations, tries) =
            (plan.combinations().len(), u64::from(plan.buyers) * u64::from(plan.tries));
        let bar = ProgressBar::new(tries * combinations as u64);
        let style =
            ProgressStyle::with_template("{msg:42} {wide_bar} {percent:>3} %  {elapsed} of about {duration}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let rate = plan.limit.map_or_else(String::new, |limit| format!("the limiter lets {limit} pass"));
        Screen { bar, combinations, number: 0, tries, rate }
    }

    fn show(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Skipped(strategy) => self.say(&format!("{strategy}: skipped, no --redis URL")),
            Progress::Measuring => self.bar.set_message("measuring the database"),
            Progress::Measured { per_second, clients, limit } => {
                self.rate = format!(
                    "this database sells {per_second} a second to {clients} clients at a time; the limiter lets {limit} pass"
                );
                self.say(&self.rate);
                self.bar.reset_elapsed();
            }
            Progress::Started(combination) => {
                self.number += 1;
                self.bar.set_message(format!("{} of {}: {combination}", self.number, self.combinations));
            }
            Progress::Tried(tries) => self.bar.set_position((self.number as u64 - 1) * self.tries + tries),
            Progress::Ended(figures) => {
                self.bar.set_position(self.number as u64 * self.tries);
                self.say(&line(figures));
            }
        }
    }

    /// Above the bar, or as a plain line where there is none.
    fn say(&self, line: &str) {
        self.bar.suspend(|| println!("{line}"));
    }
}

fn line(figures: &Figures) -> String {
    let of = Combination { strategy: figures.strategy, limiter: figures.limiter };
    let mut line = format!("{of}: sold {} of {} in {:.1} s", figures.sold, figures.stock, figures.seconds);
    for (answer, times) in &figures.odd_answers {
        line += &format!(", {times} × {answer}");
    }
    for (what, times) in
        [("unanswered", figures.unanswered), ("faults", figures.faults), ("unreported", figures.unreported)]
    {
        if times > 0 {
            line += &format!(", {times} {what}");
        }
    }
    line
}
