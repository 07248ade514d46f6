//! What is not a feature is told how to become one.
use pod::feature::author::*;

struct Forgotten;

fn main() {
    let _: Arc<dyn FeatureModule> = Arc::new(Forgotten);
}
