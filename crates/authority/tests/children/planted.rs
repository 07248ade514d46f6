//! What a child of an earlier run left behind for the rules of a later one: places that a variable names below a project,
//! as links out of it.

use super::shared::{Place, confinable};
use authority::SandboxMode;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A place whose environment names `of` for `variable`.
fn told(variable: &str, of: impl Fn(&Place) -> PathBuf) -> Place {
    let mut place = Place::new();
    let path = of(&place);
    place
        .vars
        .push((OsString::from(variable), path.into_os_string()));
    place
}

/// A child in the project makes the link; a later run's child uses it.
async fn plant(place: &Place, target: &Path, link: &Path) {
    let first = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    assert_eq!(
        place
            .says(&first, &["symlink", text(target), text(link)])
            .await,
        "ok"
    );
}

/// A toolchain below the project, made a link to a directory outside: it was given for reading.
#[tokio::test]
async fn a_toolchain_that_became_a_link_is_not_read_through() {
    if !confinable() {
        return;
    }
    for variable in ["VIRTUAL_ENV", "GOROOT", "JAVA_HOME", "CARGO_HOME"] {
        let place = told(variable, |place| place.project.join("env"));
        // Of `CARGO_HOME` only `bin` and its like are given.
        let target = place.outside.clone();
        let within = place.outside.join("bin");
        fs::create_dir(&within).unwrap();
        fs::write(within.join("private"), "private").unwrap();
        plant(&place, &target, &place.project.join("env")).await;
        let private = within.join("private");
        let later = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
        assert_eq!(
            place.says(&later, &["read", text(&private)]).await,
            "EACCES",
            "{variable}"
        );
        let mut other = Place {
            project: place.home.join("other"),
            ..place
        };
        fs::create_dir(&other.project).unwrap();
        other.tag.push('o');
        let later = other.spawner(SandboxMode::ReadOnly).unwrap();
        let said = other.says(&later, &["read", text(&private)]).await;
        // To root every directory is writable; an ordinary user's home is, too.
        assert_eq!(said, "EACCES", "{variable} of another project");
    }
}

/// Moved elsewhere by the person, with a link in the home directory: still found, but no further than that.
#[tokio::test]
async fn the_persons_own_links_are_followed_once() {
    if !confinable() {
        return;
    }
    let place = Place::new();
    let big = place.outside.join("big");
    let tools = place.outside.join("tools");
    fs::create_dir_all(big.join("registry")).unwrap();
    fs::create_dir_all(&tools).unwrap();
    fs::write(big.join("registry/crate"), "code").unwrap();
    fs::write(big.join(".package-cache"), "").unwrap();
    fs::write(tools.join("rustc"), "code").unwrap();
    fs::remove_dir_all(place.home.join(".cargo")).unwrap();
    symlink(&big, place.home.join(".cargo")).unwrap();
    // One that a second link leads on from.
    symlink(&tools, place.outside.join("moved")).unwrap();
    symlink(place.outside.join("moved"), place.home.join(".rustup")).unwrap();
    let caged = place.spawner(SandboxMode::WorkspaceWrite).unwrap();
    let says = async |op, path: PathBuf| place.says(&caged, &[op, text(&path)]).await;
    assert_eq!(
        says("read", place.home.join(".cargo/registry/crate")).await,
        "ok"
    );
    assert_eq!(
        says("write", place.home.join(".cargo/.package-cache")).await,
        "EACCES"
    );
    assert_eq!(
        says("write", place.home.join(".cargo/registry/crate")).await,
        "EACCES"
    );
    assert_eq!(
        says("read", place.home.join(".rustup/rustc")).await,
        "EACCES"
    );
}
