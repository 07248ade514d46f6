//! What a host is started with, and what others of the program share with it.

use super::messages::PersonMessages;
use crate::compose::model::ResolvedModel;
use crate::compose::secrets::ResolvedSecrets;
use crate::config::Config;
use crate::env::Env;
use crate::launch::LaunchOptions;
use crate::points::Points;
use authority::Ambient;
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// What a host is started with.
#[derive(Clone, Copy)]
pub struct HostContext<'a> {
    pub env: &'a Env,
    pub launch: &'a LaunchOptions,
    /// With these options over it.
    pub config: &'a Config,
    pub ambient: &'a Ambient,
    pub points: &'a Points,
    pub messages: PersonMessages,
    /// For a pod that stays: its model, and a key that may be missing. A run chooses its model, and needs the key.
    pub resolved: Option<&'a ResolvedModel>,
    /// For a pod that stays: the secrets of its features, as its starter read them. A run reads them itself.
    pub secrets: Option<&'a ResolvedSecrets>,
    /// Shows the report of an install that lacks a required feature.
    pub show_report: fn(&Value),
}

/// The mark of the pod's child processes, once there can be any. Shared with whatever ends the program.
#[derive(Clone, Debug, Default)]
pub struct ChildTag(Arc<OnceLock<String>>);

impl ChildTag {
    /// The mark, once there can be children.
    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    pub(super) fn set(&self, tag: &str) {
        // A process hosts one pod, which is opened once.
        drop(self.0.set(tag.to_owned()));
    }
}
