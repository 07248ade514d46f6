//! What a service lends does not leave the use.
use pod::feature::ServiceHandle;

trait Names: Send + Sync {
    fn first(&self) -> &str;
}

fn keep(names: &ServiceHandle<dyn Names>) -> &str {
    names.with(|names| names.first()).unwrap_or_default()
}

fn main() {}
