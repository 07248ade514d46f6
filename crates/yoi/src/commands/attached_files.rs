//! Images and documents beside an input: those of `--attach`, and those that its text names as `@FILE`.

use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::project::Project;
use llm_worker::attachment::{MAX_DOCUMENT, MAX_FILES, MAX_IMAGE, attachment, check_total, media};
use pod::control::NewFile;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most bytes that are read of a file.
const MAX_FILE: usize = if MAX_DOCUMENT > MAX_IMAGE {
    MAX_DOCUMENT
} else {
    MAX_IMAGE
};

/// How much of a file tells what it is.
const HEAD: u64 = 16;

/// The files of an input whose command line has this text.
///
/// # Errors
/// One of `--attach` cannot be read, or no model can see it; one of the text is not the project's or may hold secrets;
/// there are too many.
pub(crate) fn load(
    attached: &[PathBuf],
    text: Option<&str>,
    env: &Env,
) -> Result<Vec<NewFile>, Failure> {
    let named = named(text.unwrap_or_default(), env);
    named.iter().try_for_each(|path| check_named(path, env))?;
    let mut seen = BTreeSet::new();
    let all = attached.iter().chain(&named);
    let paths: Vec<_> = all.filter(|path| seen.insert(env.cwd.join(path))).collect();
    let refused = |what: String| Err(Failure::new(Exit::Usage, what));
    if paths.len() > MAX_FILES {
        return refused(format!(
            "an input has at most {MAX_FILES} files, not {}",
            paths.len()
        ));
    }
    let mut files = Vec::new();
    for path in paths {
        files.push(read(path, env)?);
    }
    let bytes = files.iter().map(|file: &NewFile| file.bytes.len() as u64);
    match check_total(bytes) {
        Ok(()) => Ok(files),
        Err(what) => refused(format!("the input has {what}")),
    }
}

/// The images and documents that a text names. Other words that begin with `@` are only words.
fn named(text: &str, env: &Env) -> Vec<PathBuf> {
    let paths = text.split_whitespace().filter_map(|word| {
        let word = word
            .trim_start_matches(['(', '"', '\''])
            .strip_prefix('@')?;
        let whole = Path::new(word);
        let bare = Path::new(word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']));
        [whole, bare]
            .into_iter()
            .find(|path| is_seen(&env.cwd.join(path)))
            .map(Path::to_path_buf)
    });
    paths.collect()
}

/// A script may give `yoi` the words of others: what they name is only what Read shows without a question.
fn check_named(path: &Path, env: &Env) -> Result<(), Failure> {
    let root = Project::around(env).root.canonicalize().ok();
    let at = env.cwd.join(path).canonicalize().ok();
    let names = Config::load(env)?.secret_names()?;
    let is_open = |at: &Path| {
        let relative = root.as_ref().and_then(|root| at.strip_prefix(root).ok());
        relative.is_some_and(|relative| !names.matches(relative))
    };
    if at.as_deref().is_some_and(is_open) {
        return Ok(());
    }
    let shown = authority::escape(path);
    let what = format!("@{shown} is outside the project, or may hold secrets");
    Err(Failure::new(Exit::Usage, what).help(format!("to show it, use --attach {shown}")))
}

fn is_seen(path: &Path) -> bool {
    let mut head = Vec::new();
    path.is_file()
        && File::open(path)
            .and_then(|file| file.take(HEAD).read_to_end(&mut head))
            .is_ok_and(|_| media(&head).is_some())
}

fn read(path: &Path, env: &Env) -> Result<NewFile, Failure> {
    let shown = authority::escape(path);
    let failed = |what: String| Failure::new(Exit::Data, what);
    let unread = |error: &std::io::Error| failed(authority::explain_at(&shown, error));
    let at = env.cwd.join(path);
    let mut bytes = Vec::new();
    // Before it is opened: to open a pipe waits.
    let kind = std::fs::metadata(&at).map_err(|error| unread(&error))?;
    if !kind.is_file() {
        return Err(failed(format!("{shown} is not a regular file")));
    }
    File::open(&at)
        .and_then(|file| file.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| unread(&error))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    attachment(&name, &bytes).map_err(|why| {
        failed(format!("{shown} is {why}")).help("attach a PNG, JPEG, WebP or GIF image, or a PDF")
    })?;
    Ok(NewFile {
        name: name.into_owned(),
        bytes: bytes.into(),
    })
}
