//! `yoi notify`: a notification for the model of a live pod, durable when the command succeeds.

use crate::cli::NotifyArgs;
use crate::commands::input;
use crate::commands::live::live;
use crate::show::out;
use crate::socket::block_on;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::pods::Pods;
use protocol::method::Notify;
use protocol::status::{State, Status};

pub(crate) fn run(args: &NotifyArgs, env: &Env) -> Result<Exit, Failure> {
    let pods = Pods::of(env)?;
    let name = pods.find(&args.name)?;
    let text = input::given(&args.text, env)?;
    block_on(async {
        let mut pod = live(&pods, &name, "yoi notify").await?;
        let before = pod.status().await?;
        pod.tell(|cmd_id| Notify {
            text,
            wake: args.wake,
            cmd_id,
        })
        .await?;
        out::line(&format!("{name} {}", delivery(&before, args.wake)));
        Ok(Exit::Done)
    })?
}

/// When the model reads a notification, given the pod's state before it came.
fn delivery(before: &Status, wake: bool) -> &'static str {
    match (before.state, wake) {
        (State::Held, _) => "is held and delivers the notification after `yoi resume`",
        (State::Waiting, _) => {
            "waits for your approval, and delivers the notification at the next step of its turn"
        }
        (State::Working, _) => "delivers the notification at the next step of its turn",
        (State::Idle, true) => "starts a turn that delivers the notification",
        (State::Idle | State::Stopping | State::Unknown, _) => {
            "delivers the notification in its next turn"
        }
    }
}
