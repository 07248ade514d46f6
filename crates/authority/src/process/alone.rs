//! Tests that end all children of their process have one of their own: the other tests of this program start git.

use std::process::Command;

/// Set in the process that runs one test alone.
const ALONE: &str = "YOI_TEST_ALONE";

/// Whether this process runs this test alone. If not, another one did, and the test passed there.
pub(super) fn alone(module: &str, test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let module = module
        .split_once("::")
        .map_or(module, |(_crate, module)| module);
    let name = format!("{module}::{test}");
    let program = std::env::current_exe().unwrap();
    let ran = Command::new(program)
        .args(["--exact", &name])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
    false
}
