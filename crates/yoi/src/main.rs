//! The program's entry: hands over what belongs to the process and leaves with the code it gets back.

use std::process::ExitCode;

fn main() -> ExitCode {
    yoi::Program::new().main(std::env::args_os())
}
