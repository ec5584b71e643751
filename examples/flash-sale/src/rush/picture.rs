//! The picture: one row per question, one pair of bars per strategy.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use tidegate_plot::{Axis, Chart, Color, Panels, Series};

use super::failure::Failure;
use super::figures::Figures;
use super::plan::Limiter;
use super::surroundings::Surroundings;

/// Pixels of the PNG per pixel of the SVG.
const SHARPNESS: f32 = 2.0;

/// The font that is always there, because it is inside the program.
const FONT: &str = "DejaVu Sans";

/// Room above the highest bar for its number.
const HEADROOM: f64 = 1.2;

/// A row of the picture: its title, its axis, and what is drawn.
type Question = (&'static str, fn(&str) -> Axis, fn(&Figures) -> Option<f64>);

const QUESTIONS: [Question; 5] = [
    ("pieces sold that were not there", number, |one| Some(one.oversold as f64)),
    ("conflicts: somebody else was faster", number, |one| Some(one.conflicts as f64)),
    ("attempts that reached the database, per second", number, |one| Some(one.attempts as f64 / one.seconds)),
    ("99 of 100 attempts took no longer than", time, |one| Some(one.p99_ms)),
    ("sold out after", time, |one| one.sold_out_after_ms.map(|after| after as f64)),
];

fn number(label: &str) -> Axis {
    Axis::number(label)
}

fn time(label: &str) -> Axis {
    Axis::milliseconds(label)
}

/// The comparison as SVG.
pub(super) fn svg(figures: &[Figures], surroundings: &Surroundings) -> String {
    let (stock, buyers) = figures.first().map_or((0, 0), |first| (first.stock, first.buyers));
    let Surroundings { database, cores, date, .. } = surroundings;
    let limit = figures.iter().find_map(|one| one.limit.as_deref()).unwrap_or("none");
    let panels = Panels::new(format!("{buyers} buyers, {stock} pieces: with and without a limiter"))
        .subtitle(format!("{database}, {cores} cores, {date}; limiter {limit}"))
        .panel_height(96);
    QUESTIONS.into_iter().fold(panels, |panels, question| panels.panel(panel(figures, question))).render()
}

fn panel(figures: &[Figures], (title, axis, value): Question) -> Chart {
    let bars = |name: &str, limiter: Limiter| {
        let those = figures.iter().filter(move |one| one.limiter == limiter);
        Series::bars(name, those.map(|one| (one.strategy.name(), value(one).unwrap_or(f64::NAN))))
    };
    let highest = figures.iter().filter_map(value).fold(0.0, f64::max);
    // Where everything is zero, the axis is that of one.
    let top = if highest > 0.0 { highest * HEADROOM } else { 1.0 };
    Chart::new(title)
        .y(axis("").range(0.0, top))
        .series(bars("without limiter", Limiter::Off).color(Color::series(1)))
        .series(bars("with limiter", Limiter::On).color(Color::series(0)))
}

/// An SVG as PNG, with letters that need no font of the machine.
pub(super) fn png(svg: &str) -> Result<Vec<u8>, Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::of("comparison.png", why);
    let mut options = Options { font_family: FONT.to_owned(), ..Options::default() };
    let fonts = options.fontdb_mut();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family(FONT);
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let size = tree.size().to_int_size().scale_by(SHARPNESS).ok_or_else(|| failed(&"it has no size"))?;
    let mut pixels = Pixmap::new(size.width(), size.height()).ok_or_else(|| failed(&"it has no size"))?;
    resvg::render(&tree, Transform::from_scale(SHARPNESS, SHARPNESS), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| failed(&error))
}
