//! What a service lends does not leave the call, either.
use pod::feature::{ServiceFuture, ServiceHandle};

trait Names: Send + Sync {
    fn first(&self) -> ServiceFuture<'_, &str>;
}

async fn keep(names: &ServiceHandle<dyn Names>) -> String {
    names.call(|names| names.first()).await.unwrap_or_default().to_owned()
}

fn main() {}
