//! Text that fits: escaping, and widths estimated without a font.
//!
//! The widths are on the generous side, for the fonts behind `system-ui` differ.

/// The width of a letter, as a share of the font size.
const LETTER: f64 = 0.58;

/// Text that is safe in XML content and attributes; control characters become spaces.
pub(crate) fn escape(text: &str) -> String {
    let allowed = |letter: char| !letter.is_control() && !matches!(letter, '\u{fffe}' | '\u{ffff}');
    let clean: String = text.chars().map(|letter| if allowed(letter) { letter } else { ' ' }).collect();
    let angles = clean.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    angles.replace('"', "&quot;").replace('\'', "&#39;")
}

/// About how many pixels a line of text takes.
pub(crate) fn width(text: &str, font_size: f64) -> f64 {
    text.chars().count() as f64 * font_size * LETTER
}

/// The text itself, or as much of it as fits, with an ellipsis.
pub(crate) fn fit(text: &str, pixels: f64, font_size: f64) -> String {
    if width(text, font_size) <= pixels {
        return text.to_owned();
    }
    let room = (pixels / font_size / LETTER) as usize;
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_are_defused() {
        assert_eq!(
            escape("<a b=\"c\">'&'\r\n\0</a>"),
            "&lt;a b=&quot;c&quot;&gt;&#39;&amp;&#39;   &lt;/a&gt;"
        );
    }

    #[test]
    fn what_does_not_fit_ends_in_an_ellipsis() {
        assert_eq!(fit("short", 100.0, 10.0), "short");
        assert_eq!(fit("aaaaaaaaaa", 40.0, 10.0), "aaaaa…");
        assert_eq!(fit("abc", 0.0, 10.0), "…");
    }
}
