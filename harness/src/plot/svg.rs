//! Writes SVG: every text is escaped, every coordinate is rounded to two decimals.

use super::color::style_sheet;
use super::text::escape;

/// An SVG document being written.
#[derive(Debug)]
pub(crate) struct Svg(String);

/// A rectangle on the page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Svg {
    /// Starts a document of this size, with what a screen reader says about it.
    pub(crate) fn open(width: f64, height: f64, title: &str, description: &str) -> Self {
        let (width, height) = (pixel(width), pixel(height));
        let (title, description, style) = (escape(title), escape(description), style_sheet());
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n<style>\n{style}</style>\n\
             <rect class=\"tg-paper\" width=\"{width}\" height=\"{height}\"/>\n"
        ))
    }

    /// Draws a group of one colour, named for readers that point at it.
    pub(crate) fn group(&mut self, class: &str, name: &str, draw: impl FnOnce(&mut Self)) {
        self.0 += &format!("<g class=\"{class}\"><title>{}</title>\n", escape(name));
        draw(self);
        self.0 += "</g>\n";
    }

    /// Draws what is cut off at the edges of an area, a stroke's width beyond them.
    pub(crate) fn clipped(&mut self, area: Area, draw: impl FnOnce(&mut Self)) {
        let [x, y] = [area.left - 1.5, area.top - 1.5].map(pixel);
        let [width, height] = [area.right - area.left + 3.0, area.bottom - area.top + 3.0].map(pixel);
        let size = format!("width=\"{width}\" height=\"{height}\"");
        // The view box keeps the coordinates those of the document.
        self.0 += &format!("<svg x=\"{x}\" y=\"{y}\" {size} viewBox=\"{x} {y} {width} {height}\">\n");
        draw(self);
        self.0 += "</svg>\n";
    }

    pub(crate) fn rect(&mut self, class: &str, area: Area) {
        let [x, y] = [area.left, area.top].map(pixel);
        let [width, height] = [area.right - area.left, area.bottom - area.top].map(pixel);
        let size = format!("width=\"{width}\" height=\"{height}\"");
        self.0 += &format!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" {size}/>\n");
    }

    /// Joins points by straight lines.
    pub(crate) fn lines(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|&(x, y)| format!("{} {}", pixel(x), pixel(y))).collect();
        self.0 += &format!("<path class=\"{class}\" d=\"M{}\"/>\n", points.join("L"));
    }

    /// Draws the same outline, in commands relative to its middle, at every point.
    pub(crate) fn stamps(&mut self, outline: &str, points: &[(f64, f64)]) {
        let stamp = |&(x, y): &(f64, f64)| format!("M{} {}{outline}", pixel(x), pixel(y));
        let stamps: String = points.iter().map(stamp).collect();
        self.0 += &format!("<path class=\"tg-glyph\" d=\"{stamps}\"/>\n");
    }

    /// Writes a line of text, unless it is empty.
    pub(crate) fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        if !text.is_empty() {
            let (x, y, text) = (pixel(x), pixel(y), escape(text));
            self.0 += &format!("<text class=\"tg-text {class}\" x=\"{x}\" y=\"{y}\">{text}</text>\n");
        }
    }

    /// Writes a line of text that runs upwards, with its middle here.
    pub(crate) fn text_upwards(&mut self, (x, y): (f64, f64), text: &str) {
        self.0 += &format!("<g transform=\"translate({} {}) rotate(-90)\">\n", pixel(x), pixel(y));
        self.text("tg-middle", (0.0, 0.0), text);
        self.0 += "</g>\n";
    }

    pub(crate) fn finish(self) -> String {
        self.0 + "</svg>\n"
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
        svg.group("c", "<g>", |svg| svg.text("c", (0.0, 0.0), "<l>"));
        let written = svg.finish();
        for letter in ["t", "d", "g", "l"] {
            assert!(written.contains(&format!(">&lt;{letter}&gt;</")), "{letter}: {written}");
        }
    }
}
