//! Clients of a pod that stays: one that gives it work, and those that follow it and throw away what they read.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::{self, JoinHandle};

/// A connection that said hello.
pub struct Driver(BufReader<UnixStream>);

impl Driver {
    /// Connects to the pod in `dir`.
    #[must_use]
    pub fn connect(dir: &Path) -> Self {
        let mut driver = Self(BufReader::new(
            UnixStream::connect(dir.join("sock")).unwrap(),
        ));
        driver.ask(
            "hello",
            &json!({ "versions": [1], "client": "bench", "role": "driver" }),
        );
        driver
    }

    /// A request and its answer.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
            .to_string()
            + "\n";
        io::Write::write_all(self.0.get_mut(), line.as_bytes()).unwrap();
        let mut answer = String::new();
        self.0.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer
            .get("result")
            .unwrap_or_else(|| panic!("{method}: {answer}"))
            .clone()
    }

    /// Gives the pod an input, and waits for the end of its turn.
    pub fn turn(&mut self) {
        let input = self.ask("input", &json!({ "text": "go", "cmd_id": "1" }));
        let end = self.ask("wait", &input);
        assert_eq!(
            end.get("outcome"),
            Some(&json!({ "outcome": "done" })),
            "{end}"
        );
    }
}

/// An attached client that reads everything.
pub struct Watcher {
    stream: UnixStream,
    reading: JoinHandle<u64>,
}

impl Watcher {
    /// Attaches to the pod in `dir`.
    #[must_use]
    pub fn attach(dir: &Path) -> Self {
        let mut driver = Driver::connect(dir);
        driver.ask("attach", &json!({}));
        let stream = driver.0.get_ref().try_clone().unwrap();
        let reading = thread::spawn(move || {
            let mut read = 0;
            let mut piece = vec![0; 64 * 1024];
            while let Ok(more @ 1..) = driver.0.read(&mut piece) {
                read += more as u64;
            }
            read
        });
        Self { stream, reading }
    }

    /// Leaves; the bytes that were read.
    #[must_use]
    pub fn leave(self) -> u64 {
        self.stream.shutdown(Shutdown::Both).unwrap();
        self.reading.join().unwrap()
    }
}
