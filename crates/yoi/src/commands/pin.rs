//! `yoi pin`: texts that stay in the context of a live pod.

use crate::cli::PinArgs;
use crate::commands::input;
use crate::commands::live::live;
use crate::show::out;
use crate::socket::block_on;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::Pods;
use protocol::method::{Pin, Unpin};
use protocol::status::{PinStatus, Status};

pub(crate) fn run(args: &PinArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let text = args
        .text
        .as_ref()
        .map(|text| input::given(text, env))
        .transpose()?;
    block_on(async {
        let mut pod = live(&pods, &name, "yoi pin").await?;
        match (text, args.remove) {
            (Some(text), _) => {
                pod.tell(|cmd_id| Pin { text, cmd_id }).await?;
                out::line(&format!(
                    "{name}: pinned; the model gets it with the next request"
                ));
            }
            (None, Some(pin)) => {
                let help = format!("`yoi pin {name}` lists the pins");
                pod.tell(|cmd_id| Unpin { pin, cmd_id })
                    .await
                    .map_err(|failure| failure.help(help))?;
                out::line(&format!("{name}: pin {pin} is removed"));
            }
            (None, None) => listed(&name, &pod.status().await?)
                .iter()
                .for_each(|line| out::line(line)),
        }
        Ok(Exit::Done)
    })?
}

pub(super) fn listed(name: &str, status: &Status) -> Vec<String> {
    if status.pins.is_empty() {
        return vec![format!("{name} has no pins")];
    }
    status
        .pins
        .iter()
        .map(|PinStatus { pin, text }| format!("{pin}  {}", text.replace('\n', "\n   ")))
        .collect()
}
