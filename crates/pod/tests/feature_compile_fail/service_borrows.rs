//! Methods of a contract take owned arguments: a call may be dropped at any time.
use pod::feature::{ServiceFuture, ServiceHandle};

trait Names: Send + Sync {
    fn find<'a>(&'a self, part: &'a str) -> ServiceFuture<'a, bool>;
}

async fn ask(names: &ServiceHandle<dyn Names>) -> bool {
    let part = String::from("a");
    names.call(|names| names.find(&part)).await.unwrap_or_default()
}

fn main() {}
