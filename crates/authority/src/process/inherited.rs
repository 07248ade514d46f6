//! Descriptors this process was started with and knows nothing of.

use crate::Ambient;

/// The first number after standard input, output and error.
const FIRST: libc::c_int = 3;

/// Keeps all descriptors but the standard three from children: what is open is an authority no confinement judges.
/// For the start of the program, before there are threads. Best effort: they stay open in this process.
pub fn seal_inherited(_: &Ambient) {
    close_fds::set_fds_cloexec(FIRST, &[]);
}
