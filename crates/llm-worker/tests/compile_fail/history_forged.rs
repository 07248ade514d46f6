// E0451: a history is begun or restored
fn forge(surface: llm_worker::Surface, projection: llm_worker::Projection) -> llm_worker::History {
    llm_worker::History { surface, projection, counters: llm_worker::Counters::default() }
}

fn main() {}
