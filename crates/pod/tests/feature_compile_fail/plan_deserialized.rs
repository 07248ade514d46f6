//! Nor can the plan that carries it.
fn main() {
    let _: Result<pod::feature::InstallPlan, _> = serde_json::from_str("{}");
}
