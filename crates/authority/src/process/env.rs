//! The environment of children: inherited variables, and variables that are always set.

use crate::{Ambient, Error, ErrorKind};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variables that a child inherits if the host has them. All others are dropped.
const INHERITED: &str = "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TERM COLORTERM TZ CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN \
    PYENV_ROOT PYENV_VERSION VIRTUAL_ENV CONDA_PREFIX NVM_DIR NVM_BIN VOLTA_HOME FNM_DIR GOPATH GOROOT \
    GOMODCACHE JAVA_HOME RBENV_ROOT ASDF_DIR ASDF_DATA_DIR SDKMAN_DIR XDG_DATA_DIRS XDG_CONFIG_DIRS NIX_PATH \
    NIX_PROFILES SSL_CERT_FILE SSL_CERT_DIR NIX_SSL_CERT_FILE SOURCE_DATE_EPOCH LOCALE_ARCHIVE";

/// Names with this prefix are inherited, too.
const INHERITED_PREFIX: &str = "LC_";

/// Variables set for every child, because a prompt or a pager would wait for ever.
const SET: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("EDITOR", "false"),
    ("VISUAL", "false"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
    ("NO_COLOR", "1"),
    ("CARGO_TERM_COLOR", "never"),
    ("CARGO_TERM_PROGRESS_WHEN", "never"),
];

/// Variables that name cache directories of tools, as paths below the pod's cache directory: of tools that follow XDG,
/// and of tools with a setting of their own. Confined children cannot write the user's caches.
const CACHES: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", ""),
    ("GOCACHE", "go-build"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("CCACHE_DIR", "ccache"),
    ("SCCACHE_DIR", "sccache"),
];

/// Variables of children without a way out: package managers would try again for a minute, or look for a newer one.
pub(super) const NO_RETRIES: &[(&str, &str)] = &[
    ("npm_config_fetch_retries", "0"),
    ("npm_config_update_notifier", "false"),
    ("CARGO_NET_RETRY", "0"),
    ("PIP_RETRIES", "0"),
];

/// Where the proxy of children is, in the network of their own: a port that no test of a project uses.
pub(super) const PROXY: &str = "127.0.0.1:808";

/// Variables that have programs use that proxy: those that most read; those of package managers, which override a
/// configuration file of the person's; and those of virtual machines, which read no others. `JAVA_TOOL_OPTIONS` would add
/// a line to the output of all of them.
const PROXIED: &[(&str, &str)] = &[
    (
        "HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy CARGO_HTTP_PROXY PIP_PROXY npm_config_proxy \
         npm_config_https_proxy YARN_HTTP_PROXY YARN_HTTPS_PROXY",
        "http://127.0.0.1:808",
    ),
    (
        "NO_PROXY no_proxy npm_config_noproxy",
        "localhost,127.0.0.1,::1",
    ),
    (
        "MAVEN_OPTS GRADLE_OPTS",
        "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=808 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=808 \
         -Daether.connector.http.useSystemProperties=true",
    ),
];

/// Parts of names of secrets; such a variable is not passed even on request.
const SECRET_PARTS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// What a child that is talked to has of the environment beside `PATH`, `LANG` and a temporary directory of its own.
#[derive(Clone, Default)]
pub struct TalkEnv {
    /// All that commands have.
    pub like_command: bool,
    /// These variables, which override others. Values may be secrets.
    pub vars: Vec<(OsString, OsString)>,
}

/// The environment variables that children inherit; checked for names of secrets.
#[derive(Clone, Debug)]
pub struct EnvPolicy {
    inherited: BTreeMap<OsString, OsString>,
    places: BTreeMap<&'static str, PathBuf>,
}

impl EnvPolicy {
    /// Reads this process's environment; `pass` names additional variables to inherit.
    ///
    /// # Errors
    /// As [`EnvPolicy::from_vars`].
    pub fn inherit(_: &Ambient, pass: &[String]) -> Result<Self, Error> {
        Self::from_vars(std::env::vars_os(), pass)
    }

    /// Reads a given environment.
    ///
    /// # Errors
    /// `Denied` for a name in `pass` that looks like a secret; `FixInput` for an invalid name, or one that the host
    /// sets for every child.
    pub fn from_vars(
        vars: impl IntoIterator<Item = (OsString, OsString)>,
        pass: &[String],
    ) -> Result<Self, Error> {
        for name in pass {
            check(name)?;
        }
        let vars: BTreeMap<_, _> = vars.into_iter().collect();
        let place = |name: &'static str| {
            let path = vars
                .get(OsStr::new(name))
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())?;
            Some((name, path))
        };
        let places = [
            "HOME",
            "XDG_STATE_HOME",
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
            "TMPDIR",
        ]
        .into_iter()
        .filter_map(place)
        .collect();
        let keep = |name: &OsStr| {
            let name = name.to_str().unwrap_or_default();
            INHERITED.split_whitespace().any(|known| known == name)
                || name.starts_with(INHERITED_PREFIX)
                || pass.iter().any(|passed| passed == name)
        };
        let inherited = vars
            .iter()
            .filter(|(name, _)| keep(name))
            .map(|(n, v)| (n.clone(), v.clone()))
            .collect();
        Ok(Self { inherited, places })
    }

    /// The value of an inherited variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.inherited
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// A directory from the host's environment, inherited by children or not.
    pub(crate) fn place(&self, name: &str) -> Option<PathBuf> {
        self.places.get(name).cloned()
    }

    /// An inherited variable that is an absolute path.
    pub(super) fn dir(&self, name: &str) -> Option<PathBuf> {
        self.get(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    }

    /// All variables of one child, without those of the call itself.
    pub(super) fn vars(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let set = SET
            .iter()
            .map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        self.inherited
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
            .chain(set)
    }
}

/// The variables of a confined child that point tools to a cache directory; they override inherited ones.
pub(super) fn caches(dir: &Path) -> impl Iterator<Item = (&'static str, PathBuf)> {
    // An empty part is not joined, because that would add a separator at the end.
    CACHES.iter().map(|(name, below)| {
        (
            *name,
            if below.is_empty() {
                dir.to_owned()
            } else {
                dir.join(below)
            },
        )
    })
}

/// The variables of a child that reaches hosts through a proxy, where it has this name and this word.
pub(super) fn proxied(user: Option<(&str, &str)>) -> impl Iterator<Item = (&'static str, String)> {
    PROXIED.iter().flat_map(move |(names, value)| {
        let value = match user {
            None => (*value).to_owned(),
            Some((user, word)) if value.starts_with("http") => value.replace("//", &format!("//{user}:{word}@")),
            Some((user, word)) if value.starts_with("-D") => format!(
                "{value} -Dhttp.proxyUser={user} -Dhttp.proxyPassword={word} -Dhttps.proxyUser={user} \
                 -Dhttps.proxyPassword={word} -Djdk.http.auth.tunneling.disabledSchemes="
            ),
            Some(_) => (*value).to_owned(),
        };
        names.split_whitespace().map(move |name| (name, value.clone()))
    })
}

fn check(name: &str) -> Result<(), Error> {
    let upper = name.to_ascii_uppercase();
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(Error::new(
            ErrorKind::FixInput,
            format!("environment: {name:?} is not a valid variable name"),
        ));
    }
    if name == "YOI_CALL" || name == "TMPDIR" || SET.iter().any(|(set, _)| *set == name) {
        let text = format!("environment: {name} is set for every child process; omit it");
        return Err(Error::new(ErrorKind::FixInput, text));
    }
    if SECRET_PARTS.iter().any(|part| upper.contains(part)) {
        let text = format!(
            "environment: {name} looks like a secret, and child processes get no secrets; omit it"
        );
        return Err(Error::new(ErrorKind::Denied, text));
    }
    Ok(())
}
