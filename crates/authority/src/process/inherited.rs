//! File descriptors that this process inherited at its start.

use crate::Ambient;

/// The first number after standard input, output and error.
const FIRST: libc::c_int = 3;

/// Keeps all inherited descriptors but the standard three from children: confinement does not cover open descriptors.
/// Called at program start, before there are threads. Best effort; the descriptors stay open in this process.
pub fn seal_inherited(_: &Ambient) {
    close_fds::set_fds_cloexec(FIRST, &[]);
}
