//! A grant set is for showing: it cannot be read back.
fn main() {
    let _: Result<pod::feature::CapabilityGrantSet, _> = serde_json::from_str("{}");
}
