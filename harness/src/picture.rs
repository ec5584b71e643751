//! An SVG as PNG, with letters that need no font of the machine.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Pixels of the PNG per pixel of the SVG.
const SHARPNESS: f32 = 2.0;

/// The font that is always there, because it is inside the program.
const FONT: &str = "DejaVu Sans";

/// Returns an SVG as PNG, at twice its size.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = Options { font_family: FONT.to_owned(), ..Options::default() };
    let fonts = options.fontdb_mut();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family(FONT);
    let tree = Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size().to_int_size().scale_by(SHARPNESS).ok_or("it has no size")?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("it has no size")?;
    resvg::render(&tree, Transform::from_scale(SHARPNESS, SHARPNESS), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_drawn_without_any_font_of_the_machine() {
        let word = |word: &str| {
            let svg = format!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><text font-family="system-ui,sans-serif" x="2" y="15">{word}</text></svg>"#
            );
            png(&svg).unwrap()
        };
        assert_ne!(word("one"), word(""));
        assert_ne!(word("one"), word("two"));
        assert!(png("no picture").is_err());
    }
}
