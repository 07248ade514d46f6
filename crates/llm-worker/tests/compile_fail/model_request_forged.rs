// E0624: a request to a model comes into being on an acknowledgement
fn forge(history: &llm_worker::History) -> llm_worker::ModelRequest {
    llm_worker::ModelRequest::new(history.body(), 1, 1)
}

fn main() {}
