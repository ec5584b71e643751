//! The report as one page that needs nothing else, for light and dark.

use super::figures::Figures;
use super::goals::Goal;
use super::report::Report;
use super::table;

const PAGE: &str = include_str!("page.html");

/// The page.
pub(super) fn html(report: &Report, svg: &str) -> String {
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
        ("{table}", table::html(&report.figures)),
        ("{goals}", goals),
        ("{database}", escaped(&surroundings.database)),
        ("{cores}", surroundings.cores.to_string()),
        ("{date}", escaped(&surroundings.date)),
        ("{rate}", escaped(&surroundings.rate)),
        ("{command}", escaped(&surroundings.command)),
    ];
    parts.iter().fold(PAGE.to_owned(), |page, (place, text)| page.replace(place, text))
}

/// What everybody wants to know first.
fn summary(figures: &[Figures]) -> String {
    let broken: Vec<&str> =
        figures.iter().filter(|one| !one.is_as_promised()).map(|one| one.strategy.name()).collect();
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
    use super::*;

    #[test]
    fn words_of_others_are_escaped() {
        assert_eq!(escaped("<b a=\"1\">&"), "&lt;b a=&quot;1&quot;&gt;&amp;");
    }
}
