//! Colours by role, for light and dark paper.
//!
//! Any two verdicts and any two series stay apart under the three common colour blindnesses, and each colour
//! has a contrast of at least 3 to 1 with its paper. The last three series also stay apart from the verdicts.

/// A colour by what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// What passed at once.
    Allowed,
    /// What passed after a wait.
    Delayed,
    /// What was turned away.
    Denied,
    /// Limits, targets and other lines to compare with.
    Reference,
    /// Blue.
    Series1,
    /// Vermilion.
    Series2,
    /// Green.
    Series3,
    /// Purple.
    Series4,
    /// Brown; white on dark paper.
    Series5,
    /// Dusty pink.
    Series6,
}

/// Class, colour on light paper and colour on dark paper, in the order of [`Color`].
const PAINTS: [(&str, &str, &str); 10] = [
    ("tg-allowed", "#0072b2", "#56b4e9"),
    ("tg-delayed", "#c98500", "#f0c24b"),
    ("tg-denied", "#b3261e", "#ff6f52"),
    ("tg-reference", "#4b5563", "#b6bdc9"),
    ("tg-series1", "#0072b2", "#4ea8e0"),
    ("tg-series2", "#d55e00", "#ee7434"),
    ("tg-series3", "#1f9e4b", "#3ddc84"),
    ("tg-series4", "#8a1fd0", "#b264ff"),
    ("tg-series5", "#3d1a00", "#ffffff"),
    ("tg-series6", "#b5838f", "#93808a"),
];

impl Color {
    const SERIES: [Color; 6] =
        [Self::Series1, Self::Series2, Self::Series3, Self::Series4, Self::Series5, Self::Series6];

    /// The colour of the n-th series, counted from zero; starts again after six.
    pub fn series(index: usize) -> Self {
        Self::SERIES[index % 6]
    }

    /// The CSS class that sets this colour.
    pub(crate) fn class(self) -> &'static str {
        PAINTS[self as usize].0
    }
}

const SHAPES: &str = "\
.tg-paper{fill:#fff}
.tg-text{font-family:system-ui,sans-serif;font-size:12px;fill:#1f2430}
.tg-middle{text-anchor:middle}
.tg-end{text-anchor:end}
.tg-title{font-size:16px;font-weight:600}
.tg-heading{font-size:13px;font-weight:600}
.tg-quiet{fill:#565e6c}
.tg-tick{font-size:11px;fill:#565e6c}
.tg-halo{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}
.tg-grid{fill:none;stroke:#e3e6eb;stroke-width:1;shape-rendering:crispEdges}
.tg-frame{fill:none;stroke:#8a929f;stroke-width:1;shape-rendering:crispEdges}
.tg-line{fill:none;stroke:currentColor;stroke-width:1.75;stroke-linejoin:round}
.tg-glyph{fill:none;stroke:currentColor;stroke-width:1.5}
.tg-fill{fill:currentColor}
.tg-wash{fill:currentColor;fill-opacity:.2}
.tg-dashed{stroke-dasharray:6 4}
";

const DARK_SHAPES: &str = "\
.tg-paper{fill:#15181e}
.tg-text{fill:#e8eaee}
.tg-quiet,.tg-tick{fill:#a9b1be}
.tg-halo{stroke:#15181e}
.tg-grid{stroke:#2b303a}
.tg-frame{stroke:#6c7584}
";

/// The style sheet that every chart carries.
pub(crate) fn style_sheet() -> String {
    let light = PAINTS.map(|(class, light, _)| format!(".{class}{{color:{light}}}\n")).concat();
    let dark = PAINTS.map(|(class, _, dark)| format!(".{class}{{color:{dark}}}\n")).concat();
    format!("{SHAPES}{light}@media (prefers-color-scheme:dark){{\n{DARK_SHAPES}{dark}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_colours_start_again_after_six() {
        assert_eq!(Color::series(0), Color::Series1);
        assert_eq!(Color::series(5), Color::Series6);
        assert_eq!(Color::series(6), Color::Series1);
    }

    #[test]
    fn every_colour_has_a_light_and_a_dark_rule() {
        let sheet = style_sheet();
        for (class, ..) in PAINTS {
            assert_eq!(sheet.matches(&format!(".{class}{{color:")).count(), 2, "{class}");
        }
        assert_eq!((Color::Allowed.class(), Color::Series6.class()), ("tg-allowed", "tg-series6"));
    }
}
