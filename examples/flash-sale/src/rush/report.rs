//! Everything that was found, as files in a folder.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::failure::Failure;
use super::figures::Figures;
use super::goals::{Goal, goals};
use super::surroundings::Surroundings;
use super::{page, picture, table};

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
    pub fn write(&self, folder: &Path) -> Result<(), Failure> {
        fs::create_dir_all(folder).map_err(|error| Failure::of(folder.display(), error))?;
        let svg = picture::svg(&self.figures, &self.surroundings);
        let json = serde_json::to_vec_pretty(self).map_err(|error| Failure::of("rush.json", error))?;
        let files: [(&str, Vec<u8>); 5] = [
            ("rush.json", json),
            ("table.md", table::markdown(&self.figures).into_bytes()),
            ("comparison.png", picture::png(&svg)?),
            ("report.html", page::html(self, &svg).into_bytes()),
            ("comparison.svg", svg.into_bytes()),
        ];
        for (name, bytes) in files {
            let path = folder.join(name);
            fs::write(&path, bytes).map_err(|error| Failure::of(path.display(), error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::env;

    use resvg::usvg::{Options, Tree};

    use super::*;
    use crate::rush::Limiter;
    use crate::strategy::Strategy;

    /// Figures such as a rush on PostgreSQL might give.
    fn figures(strategy: Strategy, limiter: Limiter) -> Figures {
        let is_on = limiter == Limiter::On;
        let is_naive = strategy == Strategy::Naive;
        let is_optimistic = matches!(strategy, Strategy::Value | Strategy::Version);
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
            untold: 0,
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
            Strategy::ALL.into_iter().flat_map(|strategy| Limiter::ALL.map(|limiter| (strategy, limiter)));
        Report::new(surroundings, pairs.map(|(strategy, limiter)| figures(strategy, limiter)).collect())
    }

    #[test]
    fn all_files_are_written_and_can_be_read() {
        let folder = env::temp_dir().join(format!("flash-sale-report-{}", std::process::id()));
        report().write(&folder).unwrap();
        let read = |name: &str| fs::read(folder.join(name)).unwrap();
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
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn letters_are_drawn_without_any_font_of_the_machine() {
        let word = |word: &str| {
            let svg = format!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><text font-family="system-ui,sans-serif" x="2" y="15">{word}</text></svg>"#
            );
            picture::png(&svg).unwrap()
        };
        assert_ne!(word("one"), word(""));
        assert_ne!(word("one"), word("two"));
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
        let fine = figures(Strategy::Version, Limiter::On);
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
        assert!(figures(Strategy::Naive, Limiter::Off).is_as_promised());
    }
}
