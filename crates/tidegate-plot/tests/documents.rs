//! Pictures in the documents are what their programs draw today.

#[expect(dead_code, reason = "the program has a main of its own")]
#[path = "../examples/algorithms.rs"]
mod algorithms;

#[test]
fn the_picture_of_the_algorithms_is_the_one_that_its_program_draws() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/algorithms.svg");
    let committed = std::fs::read_to_string(file).expect("docs/algorithms.svg is there");
    assert!(
        committed == algorithms::picture(),
        "draw it anew: cargo run -p tidegate-plot --example algorithms > docs/algorithms.svg"
    );
}
