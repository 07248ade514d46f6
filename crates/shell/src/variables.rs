//! Variables that decide what other programs run.

use crate::script::Assignment;

/// By name. What they hold is code, a program, or where programs and their code are looked for.
const NAMES: &[&str] = &[
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "EDITOR",
    "ENV",
    "FCEDIT",
    "GCONV_PATH",
    "GIT_ASKPASS",
    "GIT_DIR",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSCLOSE",
    "LESSOPEN",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PAGER",
    "PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PYTHONBREAKPOINT",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RSYNC_RSH",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "TAR_OPTIONS",
    "VISUAL",
    "ZDOTDIR",
];

/// By how they begin.
const PREFIXES: &[&str] = &["BASH", "CARGO_BUILD_", "CARGO_TARGET_", "DYLD_", "GIT_CONFIG", "LD_", "npm_config_"];

/// Programs that only print, as the value of a variable that names one.
const PLAIN: [&str; 3] = ["", "cat", "true"];

/// Whether setting it, to whatever, may start something else.
pub(crate) fn decides(name: &str) -> bool {
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether this assignment may start something else.
pub(crate) fn dangerous(assignment: &Assignment) -> bool {
    let viewer = matches!(assignment.name.as_str(), "PAGER" | "GIT_PAGER" | "MANPAGER" | "EDITOR" | "GIT_EDITOR");
    let plain = viewer && assignment.value.literal().is_some_and(|value| PLAIN.contains(&value));
    decides(&assignment.name) && !plain
}
