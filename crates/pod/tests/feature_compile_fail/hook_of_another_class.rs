//! An observer refuses nothing: its point has no gates.
use pod::feature::{FeatureDescriptor, FeatureId, HookKey};
use pod::hook::Event;

const WATCH: HookKey<Event> = HookKey::new("watch");

fn main() {
    drop(FeatureDescriptor::builder(FeatureId::builtin("x")).gate(&WATCH));
}
