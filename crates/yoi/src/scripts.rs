//! The hidden command of guests that are scripts in Lua: confined by the host that started it, with the package as its
//! working directory.

use host::exit::Exit;
use std::ffi::OsString;
use std::io::{BufReader, stderr, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Answers the requests on standard input with the script that the first word names.
pub(crate) fn run_lua(words: &[OsString]) -> ExitCode {
    let (Some(script), Ok(package)) = (words.first(), std::env::current_dir()) else {
        return Exit::Usage.code();
    };
    let path = Path::new(script);
    let path = path.strip_prefix(&package).unwrap_or(path);
    let began = Instant::now();
    let process = lua::Process {
        input: Box::new(BufReader::new(stdin())),
        output: Box::new(stdout()),
        log: Box::new(stderr()),
        // No module has a name that leads out of the package.
        read: Box::new(move |path| std::fs::read(package.join(path))),
        clock: Box::new(move || began.elapsed()),
        sleep: Box::new(std::thread::sleep),
    };
    match lua::serve(process, &path.to_string_lossy()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the guest ends: {error}");
            Exit::Failed.code()
        }
    }
}
