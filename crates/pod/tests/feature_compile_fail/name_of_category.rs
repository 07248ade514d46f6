//! The name of a category is checked where it is written.
use pod::feature::author::*;

const TRACKER: ToolCategory = ToolCategory::new("Issue tracker");

fn main() {
    let _ = TRACKER.as_str();
}
