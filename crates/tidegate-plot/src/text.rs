//! Text that fits: escaping, and widths estimated without a font.
//!
//! The widths are on the generous side, for the fonts behind `system-ui` differ.

/// Text that is safe in XML content and attributes; control characters become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// About how many pixels a line of text takes.
pub(crate) fn width(text: &str, font_size: f64) -> f64 {
    text.chars().map(|letter| letter_width(letter) * font_size).sum()
}

/// The text in lines no wider than this many pixels, broken at spaces; a longer word is shortened.
pub(crate) fn wrap(text: &str, pixels: f64, font_size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = fit(word, pixels, font_size);
        match lines.last_mut() {
            Some(line) if width(line, font_size) + width(&word, font_size) + 0.3 * font_size <= pixels => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The text itself, or as much of it as fits, with an ellipsis.
pub(crate) fn fit(text: &str, pixels: f64, font_size: f64) -> String {
    if width(text, font_size) <= pixels {
        return text.to_owned();
    }
    let mut room = pixels - letter_width('…') * font_size;
    let kept = text.chars().take_while(|&letter| {
        room -= letter_width(letter) * font_size;
        room >= 0.0
    });
    kept.chain(['…']).collect()
}

fn letter_width(letter: char) -> f64 {
    match letter {
        'f' | 'i' | 'j' | 'l' | 'r' | 't' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '(' | ')' => {
            0.36
        }
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 0.95,
        'A'..='Z' => 0.7,
        '\u{2e80}'.. => 1.0,
        _ => 0.6,
    }
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
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrap("one two  three", 50.0, 10.0), ["one two", "three"]);
        assert!(wrap(" ", 50.0, 10.0).is_empty());
    }

    #[test]
    fn what_does_not_fit_ends_in_an_ellipsis() {
        assert_eq!(fit("short", 100.0, 10.0), "short");
        assert_eq!(fit("aaaaaaaaaa", 40.0, 10.0), "aaaaa…");
        assert_eq!(fit("abc", 0.0, 10.0), "…");
    }
}
