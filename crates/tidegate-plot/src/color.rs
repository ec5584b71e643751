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

impl Color {
    const ALL: [Color; 10] = [
        Color::Allowed,
        Color::Delayed,
        Color::Denied,
        Color::Reference,
        Color::Series1,
        Color::Series2,
        Color::Series3,
        Color::Series4,
        Color::Series5,
        Color::Series6,
    ];

    /// The colour of the n-th series, counted from zero; starts again after six.
    pub fn series(index: usize) -> Self {
        Self::ALL[4 + index % 6]
    }

    /// Whether it stands for what happened to a request.
    pub(crate) fn is_verdict(self) -> bool {
        matches!(self, Color::Allowed | Color::Delayed | Color::Denied)
    }

    /// The CSS class that sets this colour.
    pub(crate) fn class(self) -> &'static str {
        self.paint().class
    }

    fn paint(self) -> Paint {
        let (class, light, dark) = match self {
            Color::Allowed => ("tg-allowed", "#0072b2", "#56b4e9"),
            Color::Delayed => ("tg-delayed", "#c98500", "#f0c24b"),
            Color::Denied => ("tg-denied", "#b3261e", "#ff6f52"),
            Color::Reference => ("tg-reference", "#4b5563", "#b6bdc9"),
            Color::Series1 => ("tg-series1", "#0072b2", "#4ea8e0"),
            Color::Series2 => ("tg-series2", "#d55e00", "#ee7434"),
            Color::Series3 => ("tg-series3", "#1f9e4b", "#3ddc84"),
            Color::Series4 => ("tg-series4", "#8a1fd0", "#b264ff"),
            Color::Series5 => ("tg-series5", "#3d1a00", "#ffffff"),
            Color::Series6 => ("tg-series6", "#b5838f", "#93808a"),
        };
        Paint { class, light, dark }
    }
}

struct Paint {
    class: &'static str,
    light: &'static str,
    dark: &'static str,
}

const SHAPES: &str = "\
.tg-paper{fill:#fff}
.tg-text{font-family:system-ui,sans-serif;font-size:12px;fill:#1f2430}
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
    let rule = |class: &str, color: &str| format!(".{class}{{color:{color}}}\n");
    let light: String = Color::ALL.map(|color| rule(color.paint().class, color.paint().light)).concat();
    let dark: String = Color::ALL.map(|color| rule(color.paint().class, color.paint().dark)).concat();
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
        for color in Color::ALL {
            assert_eq!(sheet.matches(&format!(".{}{{color:", color.class())).count(), 2, "{color:?}");
        }
    }
}
