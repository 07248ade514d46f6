//! The name of an event is checked where its key is written.
use pod::feature::author::*;

trait Bell: Send + Sync {}

const BELL: ServiceKey<dyn Bell> = ServiceKey::new("example.bell.v1");
const RANG: ServiceEventKey = BELL.event("rang\n");

fn main() {
    let _ = RANG;
}
