//! The configuration, read again while the pod runs: limits, permission rules and prices count from the next turn on.

use super::context::HostContext;
use super::run::Hosting;
use crate::compose::model::{self, ResolvedModel};
use crate::compose::{limits, rules};
use crate::config::Config;
use crate::exit::Failure;
use pod::control::{Client, Permission, Reload};
use std::sync::Arc;

/// What a reload does not change, in words for the person.
const LATER: &str =
    "changes of features, directories, sandbox, model and providers take effect at the next start of the pod";

impl Hosting<'_> {
    /// Reads files and environment again. A configuration that cannot be used changes nothing.
    pub(crate) async fn reload(&self, client: &Client) {
        match self.reloaded() {
            Ok((reload, later)) => {
                client.reload(reload).await;
                let later = if later { format!("; {LATER}") } else { String::new() };
                self.context.messages.warn(&format!("the configuration was read again{later}"));
            }
            Err(failure) => {
                self.context.messages.warn(&format!("the configuration was not changed: {}", failure.message));
            }
        }
    }

    /// The new values, and whether others changed, too.
    fn reloaded(&self) -> Result<(Reload, bool), Failure> {
        let HostContext { env, launch, config: old, resolved, .. } = self.context;
        let config = launch.over(Config::load(env)?);
        let Some(opened) = self.permission.get() else { return Err(super::failure::not_open()) };
        let permission =
            Permission { policy: rules(&config)?, workspace: opened.workspace.clone(), sandbox: opened.sandbox };
        let Some(ResolvedModel { choice, .. }) = resolved else { return Err(super::failure::not_open()) };
        let price = model::price(&choice.name, &config);
        model::affordable(&choice.name, price, &config, env)?;
        let reload = Reload { limits: limits(&config), permission: Arc::new(permission), price };
        Ok((reload, rest(old) != rest(&config)))
    }
}

/// What counts from the next start on.
fn rest(config: &Config) -> String {
    let Config { model, providers, secrets, features, sandbox, instructions, .. } = config;
    format!("{model:?}{providers:?}{secrets:?}{features:?}{sandbox:?}{instructions:?}")
}
