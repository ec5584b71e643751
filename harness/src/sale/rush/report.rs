//! Everything that was found, as files in a folder: JSON, a table, a picture, and a page that needs nothing else.

use std::fs;
use std::path::Path;
use std::thread;

use crate::plot::{Axis, Chart, Color, Panels, Series, short_number};
use serde::Serialize;

use super::figures::{Figures, Goal, goals};
use super::{Limiter, Plan};
use crate::{columns, png};

const PAGE: &str = include_str!("page.html");

/// Room above the highest bar for its number.
const HEADROOM: f64 = 1.2;

const HEADINGS: [&str; 13] = [
    "strategy",
    "limiter",
    "sold",
    "oversold",
    "duplicates",
    "lost",
    "conflicts",
    "refused",
    "attempts",
    "p50 ms",
    "p99 ms",
    "sold out ms",
    "requests/s",
];

/// A row of the picture: its title, its axis, and what is drawn.
type Question = (&'static str, fn(&str) -> Axis, fn(&Figures) -> Option<f64>);

const QUESTIONS: [Question; 5] = [
    ("pieces sold that were not there", number, |one| Some(one.oversold as f64)),
    ("conflicts: another buyer was faster", number, |one| Some(one.conflicts as f64)),
    ("attempts that reached the database, per second", number, |one| Some(one.attempts as f64 / one.seconds)),
    ("99 of 100 attempts took no longer than", time, |one| Some(one.p99_ms)),
    ("sold out after", time, |one| one.sold_out_after_ms.map(|after| after as f64)),
];

fn number(label: &str) -> Axis {
    Axis::number(label)
}

fn time(label: &str) -> Axis {
    Axis::milliseconds(label)
}

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Where and how it was run.
    pub surroundings: Surroundings,
    /// What each combination came to.
    pub figures: Vec<Figures>,
    /// What the limiter brought.
    pub goals: Vec<Goal>,
}

impl Report {
    /// Puts it together.
    pub fn new(surroundings: Surroundings, figures: Vec<Figures>) -> Report {
        let goals = goals(&figures);
        Report { surroundings, figures, goals }
    }

    /// Writes `rush.json`, `table.md`, `comparison.svg`, `comparison.png` and `report.html`.
    pub fn write(&self, folder: &Path) -> Result<(), String> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let svg = svg(&self.figures, &self.surroundings);
        let json = serde_json::to_vec_pretty(self).map_err(|error| format!("rush.json: {error}"))?;
        let files: [(&str, Vec<u8>); 5] = [
            ("rush.json", json),
            ("table.md", markdown(&self.figures).into_bytes()),
            ("comparison.png", png(&svg).map_err(|error| format!("comparison.png: {error}"))?),
            ("report.html", html(self, &svg).into_bytes()),
            ("comparison.svg", svg.into_bytes()),
        ];
        for (name, bytes) in files {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }
}

/// Where and how it was run.
#[derive(Clone, Debug, Serialize)]
pub struct Surroundings {
    /// The command that does the same.
    pub command: String,
    /// The database and its version.
    pub database: String,
    /// Cores that the shop, the database and the crowd share.
    pub cores: usize,
    /// The day and time of the database, in UTC.
    pub date: String,
    /// Where the limiter's rate comes from; nothing if it had none.
    pub rate: String,
}

impl Surroundings {
    /// Says where a rush is: on which database, at which time of it in milliseconds, and where the rate comes from.
    pub fn of(plan: &Plan, database: String, now: i64, rate: String) -> Surroundings {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Surroundings { command: command(plan), database, cores, date: date(now), rate }
    }
}

/// The command, without the addresses: they may hold passwords.
fn command(plan: &Plan) -> String {
    let limiter = match plan.limiters.as_slice() {
        [Limiter::Off] => "off",
        [Limiter::On] => "on",
        _ => "both",
    };
    let mut command = format!(
        "flash-sale rush --stock {} --buyers {} --strategy {} --limiter {limiter} --tries {} --clients {} \
         --connections {} --seed {}",
        plan.stock,
        plan.buyers,
        plan.strategies.join(","),
        plan.tries,
        plan.clients,
        plan.connections,
        plan.seed,
    );
    if let Some(limit) = &plan.limit {
        command += &format!(" --rate \"{limit}\"");
    }
    command
}

/// Milliseconds since 1970 as a day and a time.
fn date(milliseconds: i64) -> String {
    let time = jiff::Timestamp::from_millisecond(milliseconds).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// The table in columns.
pub fn text(figures: &[Figures]) -> String {
    let heading = std::iter::once(HEADINGS.map(str::to_owned));
    columns(&heading.chain(figures.iter().map(cells)).collect::<Vec<_>>(), 2)
}

/// The table in Markdown.
pub fn markdown(figures: &[Figures]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = format!("|---|---|{}\n", "--:|".repeat(11));
    let head = line(&HEADINGS.map(str::to_owned)) + &rule;
    std::iter::once(head).chain(figures.iter().map(|figures| line(&cells(figures)))).collect()
}

/// The table in HTML; nothing in it comes from outside.
fn html_table(figures: &[Figures]) -> String {
    let line = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{cell}</{tag}>")).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let body: String = figures.iter().map(|figures| line("td", &cells(figures))).collect();
    format!(
        "<table>\n<thead>\n{}</thead>\n<tbody>\n{body}</tbody>\n</table>",
        line("th", &HEADINGS.map(str::to_owned))
    )
}

fn cells(figures: &Figures) -> [String; 13] {
    [
        figures.strategy.to_owned(),
        figures.limiter.to_string(),
        figures.sold.to_string(),
        figures.oversold.to_string(),
        figures.duplicates.to_string(),
        figures.lost.to_string(),
        figures.conflicts.to_string(),
        figures.refused.to_string(),
        figures.attempts.to_string(),
        short_number(figures.p50_ms),
        short_number(figures.p99_ms),
        figures.sold_out_after_ms.map_or_else(|| "never".to_owned(), |after| after.to_string()),
        format!("{:.0}", figures.requests_per_second),
    ]
}

/// The comparison as SVG.
fn svg(figures: &[Figures], surroundings: &Surroundings) -> String {
    let (stock, buyers) = figures.first().map_or((0, 0), |first| (first.stock, first.buyers));
    let Surroundings { database, cores, date, .. } = surroundings;
    let limit = figures.iter().find_map(|one| one.limit.as_deref()).unwrap_or("none");
    let panels = Panels::new(format!("{buyers} buyers, {stock} pieces: with and without a limiter"))
        .subtitle(format!("{database}, {cores} cores, {date}; limiter {limit}"))
        .panel_height(96);
    QUESTIONS.into_iter().fold(panels, |panels, question| panels.panel(panel(figures, question))).render()
}

fn panel(figures: &[Figures], (title, axis, value): Question) -> Chart {
    let bars = |name: &str, limiter: Limiter| {
        let those = figures.iter().filter(move |one| one.limiter == limiter);
        Series::bars(name, those.map(|one| (one.strategy, value(one).unwrap_or(f64::NAN))))
    };
    let highest = figures.iter().filter_map(value).fold(0.0, f64::max);
    // Where everything is zero, the axis is that of one.
    let top = if highest > 0.0 { highest * HEADROOM } else { 1.0 };
    Chart::new(title)
        .y(axis("").range(0.0, top))
        .series(bars("without limiter", Limiter::Off).color(Color::series(1)))
        .series(bars("with limiter", Limiter::On).color(Color::series(0)))
}

/// The page.
fn html(report: &Report, svg: &str) -> String {
    let surroundings = &report.surroundings;
    let (stock, buyers) = report.figures.first().map_or((0, 0), |first| (first.stock, first.buyers));
    let goals = if report.goals.is_empty() {
        "<li>Nothing was run both with and without it.</li>\n".to_owned()
    } else {
        report.goals.iter().map(goal).collect()
    };
    let parts = [
        ("{title}", format!("A rush of {buyers} buyers on {stock} pieces")),
        ("{summary}", summary(&report.figures)),
        ("{picture}", svg.to_owned()),
        ("{table}", html_table(&report.figures)),
        ("{goals}", goals),
        ("{database}", escaped(&surroundings.database)),
        ("{cores}", surroundings.cores.to_string()),
        ("{date}", escaped(&surroundings.date)),
        ("{rate}", escaped(&surroundings.rate)),
        ("{command}", escaped(&surroundings.command)),
    ];
    parts.iter().fold(PAGE.to_owned(), |page, (place, text)| page.replace(place, text))
}

/// The first thing that a reader wants to know.
fn summary(figures: &[Figures]) -> String {
    let broken: Vec<&str> =
        figures.iter().filter(|one| !one.is_as_promised()).map(|one| one.strategy).collect();
    let oversold: u64 = figures.iter().map(|one| one.oversold).max().unwrap_or(0);
    let safe = if broken.is_empty() {
        "Every safe strategy sold exactly what there was, each piece once, and lost no order.".to_owned()
    } else {
        format!("Broken: {} did not sell exactly what there was.", broken.join(", "))
    };
    match oversold {
        0 => safe,
        oversold => format!("{safe} At worst {oversold} pieces were sold that were not there."),
    }
}

fn goal(goal: &Goal) -> String {
    let word = if goal.is_met { "met" } else { "missed" };
    format!(
        "<li class=\"{word}\"><b>{word}</b> {}: {}: {}</li>\n",
        goal.of,
        escaped(goal.wanted),
        escaped(&goal.found)
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use resvg::usvg::{Options, Tree};

    use super::*;
    use crate::Folder;
    use crate::sale::rush::tests::STRATEGIES;

    /// Figures such as a rush on PostgreSQL might give.
    fn figures(strategy: &'static str, limiter: Limiter) -> Figures {
        let is_on = limiter == Limiter::On;
        let is_naive = strategy == "naive";
        let is_optimistic = matches!(strategy, "value" | "version");
        let oversold = if is_naive { 870 } else { 0 };
        Figures {
            strategy,
            limiter,
            limit: is_on.then(|| "740/s burst 74".to_owned()),
            stock: 100,
            buyers: 10_000,
            sold: 100 + oversold,
            oversold,
            duplicates: 0,
            lost: 0,
            unreported: 0,
            requests: 49_600,
            refused: 0,
            attempts: 49_600,
            most_attempts: is_on.then_some(50_000),
            conflicts: if is_optimistic && is_on { 77 } else { u64::from(is_optimistic) * 1812 },
            faults: 0,
            unanswered: 0,
            odd_answers: [].into(),
            p50_ms: if is_on { 1.2 } else { 41.0 },
            p99_ms: if is_on { 6.4 } else { 142.0 },
            sold_out_after_ms: (!is_naive).then_some(if is_on { 240 } else { 210 }),
            seconds: 12.5,
            requests_per_second: 3968.0,
        }
    }

    fn report() -> Report {
        let surroundings = Surroundings {
            command: "flash-sale rush".to_owned(),
            database: "PostgreSQL 15 <beta>".to_owned(),
            cores: 2,
            date: "2026-11-16 08:00 UTC".to_owned(),
            rate: "the limiter lets 740/s burst 74 pass".to_owned(),
        };
        let pairs =
            STRATEGIES.into_iter().flat_map(|strategy| Limiter::ALL.map(|limiter| (strategy, limiter)));
        Report::new(surroundings, pairs.map(|(strategy, limiter)| figures(strategy, limiter)).collect())
    }

    #[test]
    fn all_files_are_written_and_can_be_read() {
        let folder = Folder::new("rush-report");
        report().write(folder.path()).unwrap();
        let read = |name: &str| fs::read(folder.file(name)).unwrap();
        let text = |name: &str| String::from_utf8(read(name)).unwrap();
        let tree = Tree::from_str(&text("comparison.svg"), &Options::default()).unwrap();
        let png = resvg::tiny_skia::Pixmap::decode_png(&read("comparison.png")).unwrap();
        assert_eq!(png.width(), 2 * tree.size().to_int_size().width());
        let json: serde_json::Value = serde_json::from_str(&text("rush.json")).unwrap();
        assert_eq!(json["figures"].as_array().unwrap().len(), 12);
        assert_eq!(
            (&json["figures"][0]["strategy"], &json["figures"][1]["limiter"]),
            (&"naive".into(), &"on".into())
        );
        assert_eq!(text("table.md").lines().count(), 14);
        let page = text("report.html");
        assert!(page.contains("PostgreSQL 15 &lt;beta&gt;") && page.contains("<svg"));
        assert!(!page.contains("{title}") && !page.contains("{table}") && !page.contains("<beta>"));
    }

    #[test]
    fn every_pair_has_its_goals() {
        let goals = report().goals;
        let of = |strategy: &str| goals.iter().filter(|goal| goal.of == strategy).count();
        assert_eq!(
            ["naive", "value", "version", "conditional", "pessimistic", "redis"].map(of),
            [1, 3, 3, 2, 3, 2]
        );
        assert!(goals.iter().all(|goal| goal.is_met), "{goals:#?}");
    }

    #[test]
    fn goals_that_are_not_reached_are_said_to_be_missed() {
        let mut report = report();
        for figures in report.figures.iter_mut().filter(|figures| figures.limiter == Limiter::On) {
            figures.attempts = 50_001;
            figures.p99_ms = 71.5;
            figures.conflicts = 363;
            figures.sold_out_after_ms = Some(316);
        }
        let goals = goals(&report.figures);
        assert!(goals.len() == 14 && goals.iter().all(|goal| !goal.is_met), "{goals:#?}");
    }

    #[test]
    fn a_safe_strategy_that_sells_too_much_or_too_little_breaks_its_promise() {
        let fine = figures("version", Limiter::On);
        assert!(fine.is_as_promised());
        for wrong in [
            Figures { oversold: 1, sold: 101, ..fine.clone() },
            Figures { sold: 99, ..fine.clone() },
            Figures { duplicates: 1, ..fine.clone() },
            Figures { lost: 1, ..fine.clone() },
        ] {
            assert!(!wrong.is_as_promised(), "{wrong:?}");
        }
        assert!(Figures { buyers: 40, sold: 40, ..fine.clone() }.is_as_promised());
        assert!(figures("naive", Limiter::Off).is_as_promised());
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_709_251_199_999), "2024-02-29 23:59 UTC");
        assert_eq!(date(1_798_761_540_000), "2026-12-31 23:59 UTC");
    }

    #[test]
    fn the_command_says_no_addresses() {
        let mut plan = Plan::new("flash-sale", "postgres://shop:secret@db/shop", &STRATEGIES);
        plan.redis = Some("redis://:secret@cache".to_owned());
        assert!(!command(&plan).contains("secret"));
        assert!(
            command(&plan)
                .contains("--strategy naive,value,version,conditional,pessimistic,redis --limiter both")
        );
    }

    #[test]
    fn words_of_others_are_escaped() {
        assert_eq!(escaped("<b a=\"1\">&"), "&lt;b a=&quot;1&quot;&gt;&amp;");
    }
}
