//! `yoi man`: the manual pages, from the same texts as `--help`.

use crate::cli::{Cli, ManArgs};
use crate::show::out;
use authority::explain_at;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use host::env::Env;
use host::exit::{Exit, Failure};
use std::fs;
use std::io;
use std::path::Path;

/// The arguments of a command with the placeholders of their values, which `clap_mangen` leaves out.
fn synopsis(command: &Command) -> String {
    let options = command.get_opts().map(|arg| format!("[{arg}]"));
    let names = command.get_positionals().map(ToString::to_string);
    let below = command.has_subcommands().then(|| "[COMMAND]".to_owned());
    let words: Vec<_> = options.chain(names).chain(below).collect();
    format!(
        "\\fB{}\\fR {}",
        command.get_bin_name().unwrap_or("yoi"),
        words.join(" ").replace('-', "\\-")
    )
}

fn with_synopsis(page: &str, synopsis: &str) -> String {
    let parts = page
        .split_once(".SH SYNOPSIS\n")
        .and_then(|(head, rest)| Some((head, rest.split_once("\n.SH ")?.1)));
    parts.map_or_else(
        || page.to_owned(),
        |(head, rest)| format!("{head}.SH SYNOPSIS\n{synopsis}\n.SH {rest}"),
    )
}

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
        pages.extend(
            command
                .get_subcommands()
                .filter(|inner| inner.get_name() != "help")
                .cloned(),
        );
        let path = dir.join(format!("{}.1", command.get_display_name().unwrap_or("yoi")));
        let synopsis = synopsis(&command);
        let mut text = Vec::new();
        let rendered = Man::new(command)
            .render(&mut text)
            .map(|()| String::from_utf8_lossy(&text).into_owned());
        let written = rendered.and_then(|page| fs::write(&path, with_synopsis(&page, &synopsis)));
        written.map_err(|error| failed(&path, &error))?;
    }
    out::line(&format!(
        "wrote yoi.1 and a manual page for each command to {}",
        dir.display()
    ));
    Ok(Exit::Done)
}
