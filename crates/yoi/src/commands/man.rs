//! `yoi man`: the manual pages, from the same texts as `--help`.

use crate::cli::{Cli, ManArgs};
use crate::env::Env;
use crate::exit::{Exit, Failure};
use crate::show::out;
use authority::explain_at;
use clap::CommandFactory;
use clap_mangen::Man;
use std::fs;
use std::io;
use std::path::Path;

pub(crate) fn run(args: &ManArgs, env: &Env) -> Result<Exit, Failure> {
    let dir = env.cwd.join(&args.dir);
    let failed = |path: &Path, error: &io::Error| {
        Failure::new(Exit::Usage, explain_at(&path.display().to_string(), error))
            .help("choose a directory that you can write to")
    };
    fs::create_dir_all(&dir).map_err(|error| failed(&dir, &error))?;
    let mut cli = Cli::command();
    // Gives each command its name in full.
    cli.build();
    let mut pages = vec![cli];
    while let Some(command) = pages.pop() {
        pages.extend(command.get_subcommands().filter(|inner| inner.get_name() != "help").cloned());
        let path = dir.join(format!("{}.1", command.get_display_name().unwrap_or("yoi")));
        let mut text = Vec::new();
        let written = Man::new(command).render(&mut text).and_then(|()| fs::write(&path, &text));
        written.map_err(|error| failed(&path, &error))?;
    }
    out::line(&format!("wrote yoi.1 and a manual page for each command to {}", dir.display()));
    Ok(Exit::Done)
}
