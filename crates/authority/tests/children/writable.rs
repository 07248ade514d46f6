//! Where a child can write, found out by trying everywhere: nowhere but in the project, its temporary directories and
//! the devices that keep nothing.

use super::shared::{self, Place, confinable, probe};
use authority::{SandboxMode, Spawner};
use std::collections::VecDeque;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// How many paths of this machine are tried, the upper levels first; all of them with `YOI_TEST_WRITABLE=all`.
const SOME: usize = 25_000;
const ALL: usize = 5_000_000;

/// How many files of one directory of the machine are: rules are for directories, but for those of the home and devices.
const FILES: usize = 3;

/// What is in a home: toolchains, caches, settings, each a directory with a file.
const HOME: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".bun/install/cache",
    ".cache/go-build",
    ".cache/pip",
    ".cache/uv",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry/index",
    ".ccache",
    ".config/git",
    ".config/go",
    ".config/yoi",
    ".deno/bin",
    ".gem/ruby",
    ".gnupg",
    ".gradle/wrapper/dists",
    ".local/bin",
    ".local/lib",
    ".local/share/fnm",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".m2/repository",
    ".npm/_cacache",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup/toolchains",
    ".sdkman/candidates",
    ".volta/bin",
    "Documents",
    "go/bin",
    "go/pkg/mod/cache",
    "sdk",
];

/// Files of it that tools write or run, beside those.
const HOME_FILES: &[&str] = &[
    ".bashrc",
    ".profile",
    ".gitconfig",
    ".npmrc",
    ".netrc",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".cargo/config.toml",
    ".cargo/env",
    ".rustup/settings.toml",
    ".config/git/config",
];

/// A home with all of that, also where the variables of tools put their caches by default.
fn furnished() -> Place {
    let place = Place::new();
    for dir in HOME {
        fs::create_dir_all(place.home.join(dir)).unwrap();
        fs::write(place.home.join(dir).join("file"), "x").unwrap();
    }
    HOME_FILES
        .iter()
        .for_each(|file| fs::write(place.home.join(file), "x").unwrap());
    place
}

/// At most about `most` paths, upper levels first, without what is below `without`; of one directory `each` files.
fn below(roots: &[&Path], without: &[&Path], most: usize, each: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo: VecDeque<PathBuf> = roots.iter().map(|root| (*root).to_owned()).collect();
    while let Some(dir) = todo.pop_front() {
        if found.len() >= most {
            break;
        }
        let mut files = 0;
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else {
                continue;
            };
            if without.contains(&path.as_path()) || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() {
                todo.push_back(path.clone());
            } else if kind.is_file() {
                files += 1;
                if files > each {
                    continue;
                }
            } else if kind.is_block_device() || path.to_string_lossy().contains("watchdog") {
                // To open one can do something.
                continue;
            }
            found.push(path);
        }
        found.push(dir);
    }
    found
}

async fn writable(place: &Place, spawner: &Spawner, paths: &[PathBuf]) -> Vec<PathBuf> {
    let list: Vec<u8> = paths
        .iter()
        .flat_map(|path| path.as_os_str().as_bytes().iter().copied().chain([0]))
        .collect();
    let file = place.project.join("list");
    fs::write(&file, list).unwrap();
    let (_, said) = shared::run(
        spawner,
        place.job(probe(), &["writable", file.to_str().unwrap()]),
    )
    .await
    .unwrap();
    assert!(said.ends_with("ok\n"), "{said}");
    said.lines()
        .filter(|line| *line != "ok")
        .map(PathBuf::from)
        .collect()
}

#[tokio::test]
async fn nothing_outside_of_the_project_can_be_written() {
    if !confinable() {
        return;
    }
    let place = furnished();
    let root = place.dir.path().canonicalize().unwrap();
    let home: Vec<PathBuf> = below(&[&root], &[], ALL, ALL);
    let own = rustix::process::geteuid().as_raw();
    let mine = home
        .iter()
        .filter(|path| path.symlink_metadata().unwrap().uid() == own)
        .cloned()
        .collect::<Vec<_>>();
    let free = place.spawner(SandboxMode::Off).unwrap();
    let there = writable(&place, &free, &mine).await;
    assert_eq!(there, mine, "what is tried goes well without confinement");

    let most = if std::env::var_os("YOI_TEST_WRITABLE").is_some_and(|value| value == "all") {
        ALL
    } else {
        SOME
    };
    let without = ["/proc", "/sys"].map(Path::new);
    let mut paths = [
        home,
        below(
            &[
                Path::new("/dev"),
                Path::new("/proc/self"),
                Path::new("/proc/sys"),
            ],
            &[],
            ALL,
            ALL,
        ),
    ]
    .concat();
    paths.extend(below(&[Path::new("/")], &without, most, FILES));
    paths.sort();
    paths.dedup();
    for mode in [SandboxMode::WorkspaceWrite, SandboxMode::ReadOnly] {
        let caged = place.spawner(mode).unwrap();
        let mut devices = vec!["/dev/null", "/dev/zero", "/dev/full"];
        let found = writable(&place, &caged, &paths).await;
        if mode == SandboxMode::WorkspaceWrite {
            devices.push("/dev/shm");
            assert!(found.contains(&place.project), "it was tried");
        }
        let allowed = |path: &PathBuf| {
            devices.iter().any(|device| path.starts_with(device))
                || (mode == SandboxMode::WorkspaceWrite && path.starts_with(&place.project))
        };
        let outside: Vec<_> = found.iter().filter(|path| !allowed(path)).collect();
        assert_eq!(
            outside,
            Vec::<&PathBuf>::new(),
            "{mode:?}, of {} paths",
            paths.len()
        );
    }
}
