//! The configuration, read again while the pod runs: limits, permission rules and prices count from the next turn on.

use super::context::HostContext;
use super::failure::not_open;
use super::run::Hosting;
use crate::compose::model::{self, ResolvedModel};
use crate::compose::{limits, rules};
use crate::config::Config;
use crate::exit::{Exit, Failure};
use pod::control::{Client, Permission, Reload};
use protocol::status::ReloadReport;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the files may take: they may be on a network.
const READ: Duration = Duration::from_secs(30);

impl Hosting<'_> {
    /// Reads files and environment again. A configuration that cannot be used changes nothing. `yoi status` shows what
    /// came of the newest reload. Cancel-safe.
    pub async fn reload(&self, client: &Client) {
        let reloaded = async { self.parts(self.read_again().await?) };
        let report = match reloaded.await {
            Ok((reload, next_start)) => {
                client.reload(reload).await;
                let later = match next_start.is_empty() {
                    true => String::new(),
                    false => {
                        format!(
                            "; these changes take effect at the next start of the pod: {}",
                            next_start.join(", ")
                        )
                    }
                };
                self.messages()
                    .warn(&format!("the configuration was read again{later}"));
                ReloadReport {
                    next_start,
                    refused: None,
                }
            }
            Err(failure) => {
                self.messages().warn(&format!(
                    "the configuration was not changed: {}",
                    failure.message
                ));
                let next_start = self.host.borrow().reload.next_start.clone();
                ReloadReport {
                    next_start,
                    refused: Some(failure.message),
                }
            }
        };
        self.host.send_modify(|host| host.reload = report);
    }

    /// On another thread: the control thread waits for no file.
    async fn read_again(&self) -> Result<Config, Failure> {
        let env = self.context.env.clone();
        let launch = self.context.launch.clone();
        let reading = tokio::task::spawn_blocking(move || launch.over(Config::load(&env)?, &env));
        let late = |_| {
            Failure::new(
                Exit::Unavailable,
                format!("its files were not read within {} s", READ.as_secs()),
            )
        };
        let read = timeout(READ, reading).await.map_err(late)?;
        read.map_err(|broken| Failure::new(Exit::Internal, broken.to_string()))?
    }

    /// The new values, and the keys that count from the next start on.
    fn parts(&self, config: Config) -> Result<(Reload, Vec<String>), Failure> {
        let HostContext {
            env,
            config: old,
            resolved,
            ..
        } = self.context;
        let Some(opened) = self.permission.get() else {
            return Err(not_open());
        };
        let permission = Permission {
            policy: rules(&config, old, env)?,
            ..Permission::clone(opened)
        };
        let Some(ResolvedModel { choice, .. }) = resolved else {
            return Err(not_open());
        };
        let price = model::price(&choice.name, &config);
        let context_window = model::context_window(&choice.name, &config);
        model::affordable(&choice.name, price, &config, env)?;
        let limits = limits(&config);
        let permission = Arc::new(permission);
        let context_policy = config.context_policy();
        let pod_limits = config.pod_limits.of_pod();
        let reload = Reload {
            limits,
            pod_limits,
            permission,
            price,
            context_window,
            context_policy,
        };
        Ok((reload, old.next_start(&config)))
    }
}
