//! Only the policy makes a grant set.
use pod::feature::{CapabilityGrantSet, HostCapability};

fn main() {
    let _ = CapabilityGrantSet { granted: vec![HostCapability::ANY_PROGRAM], denied: Vec::new() };
}
