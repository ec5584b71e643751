//! What stands below the last plot: the x axis in words.

use crate::scale::Scale;
use crate::svg::{Anchor, Area, Label, Svg};
use crate::text;

const FONT_SIZE: f64 = 11.0;
const LABEL_LINE: f64 = 20.0;
const TILT_DEGREES: i32 = 35;
const LONGEST_TILTED: f64 = 170.0;

/// The tick labels of the x axis, upright or tilted, and the axis label.
#[derive(Debug)]
pub(crate) struct Foot<'a> {
    label: &'a str,
    /// The length of the longest name, if the names are tilted because they do not fit side by side.
    tilted: Option<f64>,
}

impl<'a> Foot<'a> {
    /// `slot` is about how wide the place of one name will be.
    pub(crate) fn new(label: &'a str, names: &[&str], slot: f64) -> Self {
        let longest = names.iter().map(|name| text::width(name, FONT_SIZE)).fold(0.0, f64::max);
        Self { label, tilted: (longest > slot - 6.0).then_some(longest.min(LONGEST_TILTED)) }
    }

    pub(crate) fn height(&self) -> f64 {
        let ticks = match self.tilted {
            Some(longest) => 18.0 + longest * tilt().sin(),
            None => 20.0,
        };
        if self.label.is_empty() { ticks } else { ticks + LABEL_LINE }
    }

    /// How far the first name reaches left of its place.
    pub(crate) fn reach(&self) -> f64 {
        self.tilted.map_or(0.0, |longest| longest * tilt().cos())
    }

    /// Writes below a plot on a page of this width.
    pub(crate) fn draw(&self, svg: &mut Svg, x: &Scale, area: Area, page: f64) {
        match self.tilted {
            Some(_) => self.draw_tilted(svg, x, area),
            None => draw_upright(svg, x, area, page),
        }
        let label = text::fit(self.label, area.width, 12.0);
        let (middle, bottom) = (area.left + area.width / 2.0, area.bottom() + self.height());
        svg.text(&Label::new("", &label, middle, bottom - 4.0).anchor(Anchor::Middle));
    }

    fn draw_tilted(&self, svg: &mut Svg, x: &Scale, area: Area) {
        for tick in &x.ticks {
            let Some(at) = x.place_inside(tick.value) else { continue };
            let label = text::fit(&tick.label, LONGEST_TILTED, FONT_SIZE);
            let place = Label::new("tg-tick", &label, at + 4.0, area.bottom() + 14.0);
            svg.text(&place.anchor(Anchor::End).turn(-TILT_DEGREES));
        }
    }
}

/// Writes each label that the one before leaves room for.
fn draw_upright(svg: &mut Svg, x: &Scale, area: Area, page: f64) {
    let mut free_from = 0.0;
    for tick in &x.ticks {
        let Some(at) = x.place_inside(tick.value) else { continue };
        let half = text::width(&tick.label, FONT_SIZE) / 2.0;
        let middle = at.min(page - half - 2.0);
        if middle - half >= free_from {
            svg.text(
                &Label::new("tg-tick", &tick.label, middle, area.bottom() + 16.0).anchor(Anchor::Middle),
            );
            free_from = middle + half + 6.0;
        }
    }
}

fn tilt() -> f64 {
    f64::from(TILT_DEGREES).to_radians()
}
