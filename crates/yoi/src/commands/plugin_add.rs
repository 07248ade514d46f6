//! `yoi plugin add`, `update` and `remove`: packages of directories, archives and addresses. What is checked and shown is a
//! copy that nobody changes, and moves into place as a whole.

use super::grant_plugin;
use super::person::{agreed, only_a_person};
use super::plugin::{create, defects, missing_programs};
use crate::cli::{PluginAddArgs, PluginUpdateArgs};
use crate::show::out;
use authority::Scratch;
use authority::text::escape_line;
use host::compose::servers;
use host::config::{Config, grants};
use host::env::Env;
use host::exit::{Exit, Failure};
use host::plain_file::{self, Links};
use host::plugins::{FoundPackage, PluginOrigin, PluginSource, Standing, is_package, unpack};
use host::pods::{disk, make_private};
use plugin::{Archive, ArchiveUrl, MAX_ARCHIVE, MAX_SIGNATURE, SigningKey, fetch, sha256};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most changed files and changed abilities that are listed.
const MAX_LISTED: usize = 40;

/// How many digits of a digest people see.
const SHORT: usize = 12;

/// What a person wants: a package, and by what it is known to be the right one.
struct Wanted {
    from: PluginSource,
    key: Option<SigningKey>,
    sha256: Option<String>,
}

/// A copy of a package, which was checked.
struct Brought {
    package: Arc<FoundPackage>,
    origin: PluginOrigin,
    /// Removed with all that is still in it.
    _staged: Scratch,
}

pub(super) fn add(args: &PluginAddArgs, env: &Env) -> Result<Exit, Failure> {
    only_a_person("add a plugin")?;
    let wanted = Wanted {
        from: PluginSource::parse(&args.source, env)?,
        key: args
            .key
            .as_deref()
            .map(|key| named_key(key, env))
            .transpose()?,
        sha256: args.sha256.clone(),
    };
    place(&brought(wanted, env)?, args.replace, env)
}

pub(super) fn update(args: &PluginUpdateArgs, env: &Env) -> Result<Exit, Failure> {
    only_a_person("update a plugin")?;
    let PluginUpdateArgs {
        name,
        from,
        sha256,
        yes,
    } = args;
    let config = Config::load(env)?;
    let old = added(name, &config, env)?;
    let origin = PluginOrigin::load(env, name)?;
    let origin = origin.ok_or_else(|| {
        let message = format!("where {name} came from is not known");
        Failure::new(Exit::Usage, message)
            .help("`yoi plugin add --replace SOURCE` takes it from there, now and in updates")
    })?;
    let from = match from {
        Some(written) => PluginSource::parse(written, env)?,
        None => origin.from.clone(),
    };
    let wanted = Wanted {
        from,
        key: origin.key.clone(),
        sha256: sha256.clone(),
    };
    let new = brought(wanted, env)?;
    if new.package.name != *name {
        let message = format!("it is the plugin {}, not {name}", new.package.name);
        return Err(Failure::new(Exit::Data, message).help("`yoi plugin add` adds it beside"));
    }
    if !differs(old, &new.package)? {
        let _lock = grants::lock(env)?;
        new.origin.save(env)?;
        out::line(&format!("{name} is as it was"));
        return Ok(Exit::Done);
    }
    if matches!(old.standing(env), Standing::Granted { .. }) {
        out::line(&format!(
            "your grant is for what is there now; nothing of the new one runs before `yoi grant plugin:{name}`"
        ));
    }
    let version = |package: &FoundPackage| {
        let manifest = package.manifest.as_ref().ok()?;
        Some(manifest.package.version.clone())
    };
    let is_older = version(&new.package) < version(old);
    if is_older {
        out::line("! this is an older version than the one that is there");
    }
    let unasked = || {
        let message =
            format!("{name} was not updated: nobody can be asked whether to take what changed");
        Failure::new(Exit::Refused, message).help(match is_older {
            true => "`yoi plugin add --replace` takes an older version",
            false => "`--yes` takes it without a question",
        })
    };
    if (is_older || !*yes) && !agreed("take this? y or n: ", unasked, env)? {
        out::line(&format!("{name} stays as it was"));
        return Ok(Exit::Refused);
    }
    place(&new, true, env)
}

pub(super) fn remove(name: &str, env: &Env) -> Result<Exit, Failure> {
    only_a_person("remove a plugin")?;
    let config = Config::load(env)?;
    let package = added(name, &config, env)?;
    let _lock = grants::lock(env)?;
    for granted in grant_plugin::granted(env)?
        .iter()
        .filter(|granted| granted.is_of(&package.dir))
    {
        granted.revoke(env)?;
    }
    PluginOrigin::remove(env, name)?;
    authority::remove_dir(&ambient::claim(), &package.dir).map_err(|error| unavailable(&error))?;
    out::line(&format!("removed {}", env.shown(&package.dir)));
    Ok(Exit::Done)
}

/// Whether a plugin is one of those that were added.
pub(super) fn is_added(package: &FoundPackage, env: &Env) -> bool {
    let own = plugins_dir(env).map(|own| own.canonicalize().unwrap_or(own));
    own.is_ok_and(|own| package.dir.parent() == Some(&own))
}

fn added<'a>(name: &str, config: &'a Config, env: &Env) -> Result<&'a FoundPackage, Failure> {
    let found = config.plugins(env).found.iter();
    let mut added = found.filter(|package| package.name == name && is_added(package, env));
    let Some(package) = added.next() else {
        let name = escape_line(name);
        let what = format!("{} has no plugin `{name}`", env.shown(&plugins_dir(env)?));
        return Err(
            Failure::new(Exit::Usage, what).help("`yoi plugin list` shows where each plugin is")
        );
    };
    Ok(package)
}

fn plugins_dir(env: &Env) -> Result<PathBuf, Failure> {
    Ok(env.config_dir()?.join("plugins"))
}

/// Brings a package: nothing of it is written before an archive was checked as a whole, and nothing where starts look for
/// plugins.
fn brought(wanted: Wanted, env: &Env) -> Result<Brought, Failure> {
    let config = Config::load(env)?;
    let staged = || {
        let place = env.config_dir()?;
        make_private(&place)?;
        Scratch::create(&ambient::claim(), &place, ".plugin-").map_err(|error| unavailable(&error))
    };
    let (package, digest, staged) = match &wanted.from {
        PluginSource::Directory(dir) => {
            if wanted.key.is_some() || wanted.sha256.is_some() {
                let what = format!(
                    "{} is not an archive: it has no signature and no digest",
                    env.shown(dir)
                );
                return Err(Failure::new(Exit::Usage, what).help("name a .tar.gz or .zip file"));
            }
            let package = config.package_at(dir, env);
            checked(&package, env)?;
            (package, None, staged()?)
        }
        PluginSource::Archive(_) | PluginSource::Url(_) => {
            let (archive, digest) = archive(&wanted, env)?;
            let staged = staged()?;
            let dir = staged.path().join("unpacked");
            create(&dir)?;
            unpack(&archive, &dir).map_err(|why| Failure::new(Exit::Unavailable, why))?;
            let package = config.package_at(&dir, env);
            checked(&package, env)?;
            (package, Some(digest), staged)
        }
    };
    missing_programs(&package, env)
        .iter()
        .for_each(|missing| out::line(&format!("! {missing}")));
    let copy = staged.path().join("package");
    create(&copy)?;
    package
        .copy_to(&copy)
        .map_err(|why| Failure::new(Exit::Data, format!("plugin {}: {why}", package.name)))?;
    let origin = PluginOrigin::new(&package.name, wanted.from, wanted.key, digest);
    Ok(Brought {
        package: config.package_at(&copy, env),
        origin,
        _staged: staged,
    })
}

fn checked(package: &FoundPackage, env: &Env) -> Result<(), Failure> {
    match defects(package, env).into_iter().next() {
        None => Ok(()),
        Some(problem) => {
            Err(Failure::new(Exit::Data, problem).help("`yoi plugin check DIR` lists all problems"))
        }
    }
}

/// An archive that is the right one, and its digest.
fn archive(wanted: &Wanted, env: &Env) -> Result<(Archive, String), Failure> {
    let shown = wanted.from.shown(env);
    let data = |why: String| Failure::new(Exit::Data, format!("{shown}: {why}"));
    let bytes = bytes(&wanted.from, Part::Archive, env)?;
    let digest = sha256(&bytes);
    out::line(&format!("sha256 of the archive: {digest}"));
    if let Some(expected) = &wanted.sha256
        && !expected.eq_ignore_ascii_case(&digest)
    {
        return Err(data(format!("its sha256 is not {}", escape_line(expected))));
    }
    if let Some(key) = &wanted.key {
        let help = "ask who publishes it for the signature, or for another key: `yoi plugin add --replace --key KEY`";
        let signature =
            bytes_of_signature(&wanted.from, env).map_err(|failure| failure.help(help))?;
        let comment = key
            .check(&bytes, &signature)
            .map_err(|why| data(format!("its signature is not good: {why}")).help(help))?;
        out::line(&format!("signed by {key}: {comment}"));
    }
    let archive = Archive::read(&bytes).map_err(|bad| data(bad.to_string()))?;
    Ok((archive, digest))
}

fn bytes_of_signature(from: &PluginSource, env: &Env) -> Result<Vec<u8>, Failure> {
    bytes(from, Part::Signature, env).map_err(|failure| {
        let message = format!("its signature is missing: {}", failure.message);
        Failure::new(failure.exit, message)
    })
}

/// What is read of a source.
#[derive(Clone, Copy)]
enum Part {
    Archive,
    Signature,
}

fn bytes(from: &PluginSource, part: Part, env: &Env) -> Result<Vec<u8>, Failure> {
    match (from, part) {
        (PluginSource::Url(text), part) => {
            let usage = |why: String| Failure::new(Exit::Usage, why);
            let url = ArchiveUrl::parse(text).map_err(usage)?;
            match part {
                Part::Archive => fetched(&url),
                Part::Signature => fetched(&url.signature().map_err(usage)?),
            }
        }
        (PluginSource::Archive(path) | PluginSource::Directory(path), Part::Archive) => {
            file(path, MAX_ARCHIVE, env)
        }
        (PluginSource::Archive(path) | PluginSource::Directory(path), Part::Signature) => {
            let mut beside = path.clone().into_os_string();
            beside.push(".minisig");
            file(Path::new(&beside), MAX_SIGNATURE, env)
        }
    }
}

fn fetched(url: &ArchiveUrl) -> Result<Vec<u8>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::new(Exit::Internal, error.to_string()))?;
    let ambient = ambient::claim();
    let net = |at: &ArchiveUrl| servers::net(&ambient, &at.whole());
    let fetched = runtime.block_on(fetch(url, net));
    let fetched = fetched.map_err(|why| Failure::new(Exit::Unavailable, why))?;
    for to in &fetched.redirects {
        out::line(&format!("{url} redirects to {to}"));
    }
    Ok(fetched.bytes)
}

fn file(path: &Path, most: u64, env: &Env) -> Result<Vec<u8>, Failure> {
    let unread = |why: &str| Failure::new(Exit::Data, format!("{} {why}", env.shown(path)));
    let file = plain_file::open(path, Links::Followed).map_err(|why| unread(&why))?;
    let file = file.ok_or_else(|| unread("is not there"))?;
    plain_file::whole(file, most).map_err(|why| unread(&why))
}

/// A key as minisign prints it, or a file with one.
fn named_key(written: &str, env: &Env) -> Result<SigningKey, Failure> {
    if let Ok(key) = written.parse() {
        return Ok(key);
    }
    let path = env.cwd.join(written);
    let bytes = file(&path, MAX_SIGNATURE, env)?;
    let key = plain_file::text(&bytes).map(str::parse);
    let key =
        key.map_err(|why| Failure::new(Exit::Usage, format!("{} {why}", env.shown(&path))))?;
    key.map_err(|why| Failure::new(Exit::Usage, format!("{}: {why}", env.shown(&path))))
}

/// Shows in what a package differs from the one that is there; says whether it does.
fn differs(old: &FoundPackage, new: &FoundPackage) -> Result<bool, Failure> {
    let data = |why: String| Failure::new(Exit::Data, why);
    let was = old.content().map_err(data)?;
    let is = new.content().map_err(data)?;
    if was == is {
        return Ok(false);
    }
    let version = |package: &FoundPackage| match &package.manifest {
        Ok(manifest) => manifest.package.version.to_string(),
        Err(_) => "an unusable version".to_owned(),
    };
    let short = |digest: String| digest.chars().take(SHORT).collect::<String>();
    out::line(&format!(
        "{} {} (digest {}) becomes {} (digest {})",
        new.name,
        version(old),
        short(was.digest()),
        version(new),
        short(is.digest())
    ));
    listed(is.since(&was.lines().collect()));
    let abilities = |package| -> BTreeSet<String> {
        let lines = grant_plugin::abilities(package).unwrap_or_default();
        lines.into_iter().collect()
    };
    let could = abilities(old);
    let can = abilities(new);
    let gone: Vec<String> = could
        .difference(&can)
        .map(|line| format!("- {line}"))
        .collect();
    let added: Vec<String> = can
        .difference(&could)
        .map(|line| format!("+ {line}"))
        .collect();
    out::line(match gone.is_empty() && added.is_empty() {
        true => "what runs and what it may do is as it was",
        false => "what runs and what it may do:",
    });
    // All of what is new, however much goes.
    for line in &added {
        out::line(&format!("    {}", escape_line(line)));
    }
    listed(gone);
    Ok(true)
}

fn listed(lines: Vec<String>) {
    let more = lines.len().saturating_sub(MAX_LISTED);
    for line in lines.iter().take(MAX_LISTED) {
        out::line(&format!("    {}", escape_line(line)));
    }
    if more > 0 {
        out::line(&format!("    and {more} more"));
    }
}

/// Moves a copy to the plugins of the person in one step, and keeps where it came from.
fn place(brought: &Brought, replace: bool, env: &Env) -> Result<Exit, Failure> {
    let Brought {
        package, origin, ..
    } = brought;
    let dir = plugins_dir(env)?;
    let to = dir.join(&package.name);
    make_private(&dir)?;
    if replace {
        replaceable(&origin.from, &to, env)?;
    }
    let _lock = grants::lock(env)?;
    if replace && origin.key.is_none() {
        keeps_no_key(&package.name, env)?;
    }
    let placed = |how| renameat_with(CWD, &package.dir, CWD, &to, how);
    let replaced = if replace {
        placed(RenameFlags::EXCHANGE)
    } else {
        Err(Errno::NOENT)
    };
    let what = match replaced.map(|()| "replaced") {
        Err(Errno::NOENT) => placed(RenameFlags::NOREPLACE).map(|()| "added"),
        other => other,
    };
    match what {
        Ok(what) => out::line(&format!("{what} {} as {}", package.name, env.shown(&to))),
        Err(Errno::EXIST) => {
            return Err(
                Failure::new(Exit::Usage, format!("{} already exists", env.shown(&to)))
                    .help("`--replace` replaces it; it runs again after you grant what changed"),
            );
        }
        Err(error) => return Err(disk(&to, &error.into())),
    }
    origin.save(env)?;
    out::line(&format!("to use it: yoi grant plugin:{}", package.name));
    Ok(Exit::Done)
}

/// Refuses what is unsigned in place of what has to be signed.
fn keeps_no_key(name: &str, env: &Env) -> Result<(), Failure> {
    // What cannot be read any more is replaced.
    let Ok(Some(PluginOrigin { key: Some(key), .. })) = PluginOrigin::load(env, name) else {
        return Ok(());
    };
    let message =
        format!("{name} was added with the key {key}, and this one was not checked by a key");
    Err(Failure::new(Exit::Refused, message)
        .help("name its key with `--key`, or remove the plugin first"))
}

/// Refuses to replace what is more than an added plugin: it would be gone.
fn replaceable(from: &PluginSource, to: &Path, env: &Env) -> Result<(), Failure> {
    let refused = |what: &str| {
        Err(Failure::new(
            Exit::Usage,
            format!("{} {what}", env.shown(to)),
        ))
    };
    let Ok(there) = to.symlink_metadata() else {
        return Ok(());
    };
    match () {
        () if !there.is_dir() || !is_package(to) => {
            refused("is no plugin that was added; remove it first")
        }
        () if to.join(".git").exists() => {
            refused("is a repository of git; update it there, and grant it again")
        }
        () if to
            .canonicalize()
            .is_ok_and(|to| *from == PluginSource::Directory(to)) =>
        {
            refused("is this package itself")
        }
        () => Ok(()),
    }
}

fn unavailable(error: &authority::Error) -> Failure {
    Failure::new(Exit::Unavailable, error.to_string())
}
