//! Variables that decide what other programs run.

use crate::command_line::Assignment;

/// Variables whose value is code, a program, or a search path for programs or code.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "AR", "AS", "AWK", "BAT_PAGER", "BROWSER", "CC", "CDPATH", "CFLAGS", "CLASSPATH", "CPP", "CPPFLAGS",
    "CURL_HOME", "CXX", "CXXFLAGS", "DELTA_PAGER", "EDITOR", "ENV", "FC", "FCEDIT", "FPATH", "GLOBIGNORE",
    "GNUMAKEFLAGS", "GREP_OPTIONS", "HGRCPATH", "HOME", "HOSTALIASES", "IFS", "INPUTRC", "KRB5_CONFIG", "LD",
    "LDFLAGS", "LIBRARY_PATH", "LOCPATH", "MANPAGER", "MORE", "NLSPATH", "OPENSSL_CONF", "OPENSSL_MODULES", "PAGER",
    "PATH", "PKG_CONFIG", "POSIXLY_CORRECT", "PROMPT_COMMAND", "RSH", "SED", "SHELL", "SHELLOPTS", "TAPE",
    "TERMCAP", "TERMINFO", "TEXTDOMAIN", "TEXTDOMAINDIR", "TMUX", "UNZIP", "VISUAL", "WGETRC", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS", "XDG_DATA_HOME", "ZDOTDIR", "ZIPOPT",
];

/// Prefixes of tools' own variables, of which only those in [`HARMLESS`] are known to start nothing.
#[rustfmt::skip]
const PREFIXES: &[&str] = &[
    "BASH", "BUNDLE_", "CARGO", "CGO_", "COMPOSER_", "DENO_", "DOCKER_", "DOTNET_", "DYLD_", "FZF_", "GCC_", "GCONV", "GEM_", "GIT_", "GO",
    "GRADLE_", "JAVA", "JDK_", "KUBE", "LD_", "LESS", "LUA_", "MAKE", "MAVEN_", "MYSQL", "NODE_", "NPM_", "PERL", "PHP", "PIP_", "PNPM_", "PS",
    "PYTEST_", "PYTHON", "RIPGREP_", "RSYNC_", "RUBY", "RUST", "SSH_", "SUDO_", "SYSTEMD_", "TAR_", "UV_", "VIM", "YARN_", "npm_", "_JAVA",
];

/// Variables with such a prefix that only change output, checks or attempts.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    "CARGO_HTTP_TIMEOUT", "CARGO_INCREMENTAL", "CARGO_NET_OFFLINE", "CARGO_PROFILE_RELEASE_LTO", "CARGO_TARGET_DIR", "CARGO_TERM_COLOR",
    "CARGO_TERM_VERBOSE", "CGO_ENABLED", "DOCKER_BUILDKIT", "GIT_AUTHOR_DATE", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_NAME", "GIT_TERMINAL_PROMPT", "GIT_TRACE", "GOARCH", "GOMAXPROCS", "GOOS",
    "NODE_ENV", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONUNBUFFERED", "RUST_BACKTRACE", "RUST_LOG", "RUST_MIN_STACK",
    "RUST_TEST_THREADS",
];

/// Integer variables of bash: their values are evaluated as arithmetic.
const INTEGERS: &[&str] = &[
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PPID",
    "EUID",
    "UID",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
    "EPOCHSECONDS",
];

/// Programs that only print, as the value of a variable that names one.
const PLAIN: [&str; 3] = ["", "cat", "true"];

/// Whether setting the variable to any value may start another program.
pub(crate) fn decides(name: &str) -> bool {
    let of_a_tool =
        PREFIXES.iter().any(|prefix| name.starts_with(prefix)) && !HARMLESS.contains(&name);
    NAMES.contains(&name) || of_a_tool || INTEGERS.contains(&name)
}

/// Whether this assignment may start another program.
pub(crate) fn dangerous(assignment: &Assignment) -> bool {
    let viewer = matches!(
        assignment.name.as_str(),
        "PAGER" | "GIT_PAGER" | "MANPAGER" | "EDITOR" | "GIT_EDITOR"
    );
    let plain = viewer
        && assignment
            .value
            .literal()
            .is_some_and(|value| PLAIN.contains(&value));
    let number = INTEGERS.contains(&assignment.name.as_str())
        && assignment
            .value
            .literal()
            .is_some_and(|value| value.chars().all(|c| c.is_ascii_digit()));
    decides(&assignment.name) && !plain && !number
}
