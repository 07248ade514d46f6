//! Memory that a text takes, in a process of its own.

use tui::{Theme, markdown};

#[test]
fn a_text_in_many_images_is_kept_once() {
    // The most that this process had in memory so far, in KiB.
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let deep = 4_000;
    let long = 50_000;
    let source = format!(
        "{}{}{}",
        "![".repeat(deep),
        "a".repeat(long),
        "]()".repeat(deep)
    );
    let before = peak();
    let lines = markdown(&source, 100, Theme::Colour);
    assert_eq!(lines.len(), long / 100);
    let taken = peak() - before;
    // One more for each image is 200 MB.
    assert!(taken < 60_000, "{taken} KiB");
}
