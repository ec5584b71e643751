//! What stands above the plots: title, subtitle and legend.

use crate::chart::Chart;
use crate::legend::Legend;
use crate::svg::{Label, Svg};
use crate::text;

const TITLE_LINE: f64 = 22.0;
const SUBTITLE_LINE: f64 = 17.0;
const GAP: f64 = 6.0;

/// The text above the plots, broken into lines.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    title: Vec<String>,
    subtitle: Vec<String>,
    legend: Legend<'a>,
}

impl<'a> Head<'a> {
    pub(crate) fn new(title: &str, subtitle: &str, charts: &'a [Chart], width: f64) -> Self {
        Self {
            title: text::wrap(title, width, 16.0),
            subtitle: text::wrap(subtitle, width, 12.0),
            legend: Legend::new(charts, width),
        }
    }

    pub(crate) fn height(&self) -> f64 {
        self.text_height() + self.legend.height() + GAP
    }

    pub(crate) fn draw(&self, svg: &mut Svg, left: f64, top: f64) {
        let mut bottom = top;
        for line in &self.title {
            bottom += TITLE_LINE;
            svg.text(&Label::new("tg-title", line, left, bottom - 6.0));
        }
        for line in &self.subtitle {
            bottom += SUBTITLE_LINE;
            svg.text(&Label::new("tg-quiet", line, left, bottom - 4.0));
        }
        self.legend.draw(svg, left, top + self.text_height());
    }

    fn text_height(&self) -> f64 {
        self.title.len() as f64 * TITLE_LINE + self.subtitle.len() as f64 * SUBTITLE_LINE + GAP
    }
}
