//! Only a grant makes a handle.
use pod::feature::ServiceHandle;
use std::sync::Arc;

fn main() {
    let target: Arc<str> = "a".into();
    let _: ServiceHandle<str> = ServiceHandle { target };
}
