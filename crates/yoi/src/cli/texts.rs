//! Texts after the options in `--help`. Lines are at most 78 characters long, so that no terminal of 80 columns wraps them.

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0         success
  1         the command failed or was only partly done; the model's answer
            was cut off, empty or a refusal; or the provider's quota or the
            model's context was used up. With `offline`, also: the prompt was
            not understood or not carried out
  2         wrong command, argument or directory, or the file to be created
            already exists
  3         a hook ended the run; yoi ended the run, for example because an
            answer was too large for the journal; the last tool call was
            refused; or a command of a pod used a yoi command that only a
            person may use
  4         step, cost, token or time limit reached
  5         the provider could not be reached, limited the rate of requests,
            was overloaded, reported a server error, or sent no complete and
            valid answer, even after retries
  6         a call still waits for your approval; `yoi approve` lists the
            calls that wait
  65        a journal, a plugin or an input is damaged, invalid or too long;
            or a model script (the FILE of -m scripted:FILE) is missing or
            invalid
  69        the pod is not running, or a system resource is unavailable or
            too small
  70        internal error
  74        the journal, the state directory or standard output cannot be
            read or written
  75        the pod is in use
  78        wrong configuration, model or API key; the provider rejected the
            request; a required feature is missing; or a model script has no
            answer left
  130, 143  ended by a signal";

pub(super) const VARIABLES: &str = "\
Environment variables (they override the configuration files, and options
override the variables):
  YOI_MODEL · YOI_MAX_STEPS · YOI_MAX_COST · YOI_MAX_TOKENS
  YOI_MAX_WALL (seconds) · YOI_TOOL_CONCURRENCY
  YOI_SANDBOX (read-only, workspace-write, off) · YOI_PLUGIN_DIR
  YOI_STRICT_PLUGINS (0, 1)
Diagnostic log: YOI_LOG=error, warn, info, debug or trace writes log lines to
  host.log in the directory of the pod; with --ephemeral, to standard error
Directories: XDG_CONFIG_HOME (~/.config), XDG_STATE_HOME (~/.local/state),
  TMPDIR
Colour: NO_COLOR turns colour off; CLICOLOR_FORCE turns colour on, even
  if the output goes to a pipe";

pub(super) const COMPLETIONS: &str = "\
Installation:
  bash    yoi completions bash > \\
            ~/.local/share/bash-completion/completions/yoi
  fish    yoi completions fish > ~/.config/fish/completions/yoi.fish
  zsh     add `source <(yoi completions zsh)` to ~/.zshrc, after compinit
  elvish  add `eval (yoi completions elvish | slurp)` to rc.elv";

pub(super) const START: &str = "\
A pod records these options of each start: --agent with --arg, --model,
--effort, --sandbox (or --read-only), --add-dir, --add-write-dir, --allow,
--max-steps, --max-cost, --max-tokens, --max-wall, --no-instructions, --with,
--without, --profile, --plugin-dir and --strict-plugins. A stopped or crashed
pod starts again in the directory and with the recorded options of its last
start. An option on the command line replaces the recorded value of the same
option; -C replaces the directory.

If the pod is already running, the command changes nothing. It then exits with
75 if it has INPUT, --foreground or an option that a pod records; otherwise it
exits with 0. There is one exception: if the pod is held because its API key
was missing or was rejected, and the key is available now, the command ends the
process of the pod and starts the pod again.

A TERM signal to the process of a pod interrupts the turn and ends the process;
the next start continues the turn. A HUP signal reloads limits, permission
rules and prices.";

pub(super) const ATTACH: &str = "\
On a terminal, `yoi attach` shows the pod on a full screen. F1 shows the keys;
these are the most important ones:
  Enter         send an input; Alt-Enter and Ctrl-J begin a new line
  !             at the beginning of the input: run the rest as a shell
                command of yours; the model sees it with its next request
  Esc           cancel the running turn
  y, n          answer the question of a call that waits for your approval
  PgUp, PgDn    scroll
  Ctrl-D        detach, if the input field is empty; the pod keeps running.
                Ctrl-\\, or Ctrl-C twice, detaches in any case

With --plain, with TERM=dumb, or if stdin or stdout is not a terminal,
`yoi attach` prints the newest part of the transcript, and then each new part,
in the same format as `yoi log`. Every line on stdin is one input, except lines
that begin with an exclamation mark, whose rest runs as a shell command, and
lines that begin with a slash, which are commands:
  /steer INPUT  deliver INPUT at the next step of the running turn
  /cancel       cancel the running turn
  /pause        hold the pod before its next request to the model
  /resume       continue the held pod
  /more         after a limit of [limits.pod]: allow the pod as much again,
                and continue it
  /status       show what the pod is doing
  /detach       detach; the pod keeps running
  /help         list these commands
To send an input that begins with one of these characters, put a space before
it.
With plain lines, `yoi attach` also detaches at the end of stdin and on Ctrl-C.

If the process of the pod dies or the connection is lost, `yoi attach` connects
again when the pod runs, and continues after the last record that it got. With
plain lines, it ends with an error if it cannot connect again within 2 minutes.";

pub(super) const PENDING: &str = "\
An entry of a project's yoi.toml takes effect without your consent if it only
tightens your settings, or chooses a model of a provider that you can already
use. Every other entry is pending: it has no effect until you grant it. A grant
is for one key with one value; if the value changes, the entry is pending again.
A plugin is pending until you grant the content that its directory has now; if
a file of it changes, it is pending again, and nothing of it runs.";

pub(super) const HELP: &str = "Print the help for yoi or for COMMAND";

pub(super) const HELP_BELOW: &str = "Print this help, or the help for COMMAND";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;
    use host::config::variables;

    /// The list was shorter than what a pod records, and the list of variables than what counts.
    #[test]
    fn the_lists_of_options_and_variables_are_whole() {
        let cli = Cli::command();
        let start = cli.find_subcommand("start").unwrap();
        for option in start.get_arguments().filter_map(|arg| arg.get_long()) {
            let is_told = START.contains(&format!("--{option}"));
            assert_eq!(
                is_told,
                !["adopt", "json", "quiet"].contains(&option),
                "{option}"
            );
        }
        let known: Vec<_> = variables::names().chain(["YOI_LOG"]).collect();
        let told: Vec<_> = VARIABLES
            .split(|c: char| !(c.is_ascii_uppercase() || c == '_'))
            .filter(|word| word.starts_with("YOI_"))
            .collect();
        assert_eq!(told, known);
    }
}
