//! Small SVG charts for documents, reports and benchmarks.
//!
//! A [`Chart`] is one plot with axes, a legend and reference lines; [`Panels`] stacks several over one x axis.
//! The same input always gives the same bytes, so a rendered file can be committed and compared.
//! Odd input is drawn as far as it makes sense: points that are not finite are skipped, no data says so.
//! Every chart carries its own colours for light and dark, and a title and description for screen readers.

mod axis;
mod chart;
mod color;
mod inside;
mod legend;
mod number;
mod page;
mod panels;
mod scale;
mod series;
mod svg;
mod text;

pub use axis::Axis;
pub use chart::Chart;
pub use color::Color;
pub use number::short_number;
pub use panels::Panels;
pub use series::{Mark, Reference, Series};
