//! Writes SVG: every text is escaped, every coordinate is rounded to two decimals.

use crate::color::style_sheet;
use crate::text::escape;

/// An SVG document being written.
#[derive(Debug)]
pub(crate) struct Svg {
    written: String,
}

impl Svg {
    /// Starts a document of this size, with what a screen reader says about it.
    pub(crate) fn open(width: f64, height: f64, title: &str, description: &str) -> Self {
        let (width, height) = (pixel(width), pixel(height));
        let (title, description, style) = (escape(title), escape(description), style_sheet());
        let written = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n<style>\n{style}</style>\n\
             <rect class=\"tg-paper\" width=\"{width}\" height=\"{height}\"/>\n"
        );
        Self { written }
    }

    /// Draws a group of one colour, named for readers that point at it.
    pub(crate) fn group(&mut self, class: &str, name: &str, draw: impl FnOnce(&mut Self)) {
        self.line(&format!("<g class=\"{class}\">"));
        if !name.is_empty() {
            self.line(&format!("<title>{}</title>", escape(name)));
        }
        draw(self);
        self.line("</g>");
    }

    /// Draws what is cut off at the edges of an area; coordinates stay those of the document.
    pub(crate) fn clipped(&mut self, area: Area, draw: impl FnOnce(&mut Self)) {
        let [x, y, width, height] = area.numbers();
        self.line(&format!(
            "<svg x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" viewBox=\"{x} {y} {width} {height}\">"
        ));
        draw(self);
        self.line("</svg>");
    }

    pub(crate) fn rect(&mut self, class: &str, area: Area) {
        let [x, y, width, height] = area.numbers();
        self.line(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        ));
    }

    /// Draws a path, unless it is empty.
    pub(crate) fn path(&mut self, class: &str, path: &Path) {
        if !path.0.is_empty() {
            self.line(&format!("<path class=\"{class}\" d=\"{}\"/>", path.0));
        }
    }

    /// Writes a label, unless it is empty.
    pub(crate) fn text(&mut self, label: &Label<'_>) {
        if label.text.is_empty() {
            return;
        }
        let (x, y, text) = (pixel(label.x), pixel(label.y), escape(label.text));
        let anchor = match label.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let turn = match label.turn {
            0 => String::new(),
            degrees => format!(" transform=\"rotate({degrees} {x} {y})\""),
        };
        let class = label.class;
        self.line(&format!(
            "<text class=\"tg-text {class}\" x=\"{x}\" y=\"{y}\"{anchor}{turn}>{text}</text>"
        ));
    }

    pub(crate) fn finish(mut self) -> String {
        self.line("</svg>");
        self.written
    }

    fn line(&mut self, markup: &str) {
        self.written.push_str(markup);
        self.written.push('\n');
    }
}

/// A rectangle on the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Area {
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(crate) fn grown(&self, by: f64) -> Self {
        Self {
            left: self.left - by,
            top: self.top - by,
            width: self.width + 2.0 * by,
            height: self.height + 2.0 * by,
        }
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right()
            && other.left < self.right()
            && self.top < other.bottom()
            && other.top < self.bottom()
    }

    pub(crate) fn contains(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right() <= self.right()
            && self.top <= other.top
            && other.bottom() <= self.bottom()
    }

    fn numbers(&self) -> [String; 4] {
        [self.left, self.top, self.width, self.height].map(pixel)
    }
}

/// A line of text at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label<'a> {
    class: &'a str,
    text: &'a str,
    x: f64,
    y: f64,
    anchor: Anchor,
    turn: i32,
}

/// Which end of a label its place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl<'a> Label<'a> {
    pub(crate) fn new(class: &'a str, text: &'a str, x: f64, y: f64) -> Self {
        Self { class, text, x, y, anchor: Anchor::Start, turn: 0 }
    }

    pub(crate) fn anchor(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub(crate) fn turn(self, degrees: i32) -> Self {
        Self { turn: degrees, ..self }
    }
}

/// The outline of a shape.
#[derive(Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    /// Joins points by straight lines.
    pub(crate) fn through(&mut self, points: &[(f64, f64)]) {
        let mut last = None;
        for &(x, y) in points {
            let (x, y) = (pixel(x), pixel(y));
            match &last {
                None => self.0.push_str(&format!("M{x} {y}")),
                Some((_, last_y)) if *last_y == y => self.0.push_str(&format!("H{x}")),
                Some((last_x, _)) if *last_x == x => self.0.push_str(&format!("V{y}")),
                Some(_) => self.0.push_str(&format!("L{x} {y}")),
            }
            last = Some((x, y));
        }
    }

    /// Starts anew at a point.
    pub(crate) fn move_to(&mut self, x: f64, y: f64) {
        self.through(&[(x, y)]);
    }

    /// Continues with commands relative to the last point.
    pub(crate) fn then(&mut self, commands: &str) {
        self.0.push_str(commands);
    }
}

/// A coordinate as it is written: two decimals at most, never far off the page.
fn pixel(at: f64) -> String {
    let bounded = if at.is_nan() { 0.0 } else { at.clamp(-1e6, 1e6) };
    let rounded = (bounded * 100.0).round() / 100.0;
    // Adding zero turns -0 into 0.
    (rounded + 0.0).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_finite() {
        let written = [1.0, 0.1 + 0.2, -0.001, 12.345_678, f64::NAN, f64::NEG_INFINITY].map(pixel);
        assert_eq!(written, ["1", "0.3", "0", "12.35", "0", "-1000000"]);
    }

    #[test]
    fn text_is_escaped_wherever_it_stands() {
        let mut svg = Svg::open(10.0, 10.0, "<t>", "<d>");
        svg.group("c", "<g>", |svg| svg.text(&Label::new("c", "<l>", 0.0, 0.0)));
        let written = svg.finish();
        for letter in ["t", "d", "g", "l"] {
            assert!(written.contains(&format!(">&lt;{letter}&gt;</")), "{letter}: {written}");
        }
    }
}
