//! A handle cannot be read from anywhere.
fn main() {
    let _: Result<pod::feature::ServiceHandle<str>, _> = serde_json::from_str("{}");
}
