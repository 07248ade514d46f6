//! There is no constructor for a grant set either.
use pod::feature::{CapabilityGrantSet, HostCapability};

fn main() {
    let _ = CapabilityGrantSet::new(vec![HostCapability::ANY_PROGRAM], Vec::new());
}
