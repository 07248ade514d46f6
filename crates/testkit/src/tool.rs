//! A tool made of a closure. Does not depend on features.

use llm_worker::tool::{ArgumentError, Prepared, Touch};
use llm_worker::{CallId, Tool, ToolContext, ToolDefinition, ToolEffect, ToolResult};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

type Body =
    dyn Fn(ToolContext, String) -> Pin<Box<dyn Future<Output = ToolResult> + Send>> + Send + Sync;

/// A tool that accepts any arguments, passes the raw text to a closure, and records which calls ran.
#[derive(Clone)]
pub struct FnTool {
    definition: ToolDefinition,
    pub(crate) deadline: Duration,
    touches: Vec<Touch>,
    pub(crate) for_clients: bool,
    canonical: Option<String>,
    body: Arc<Body>,
    ran: Arc<Mutex<Vec<CallId>>>,
}

impl FnTool {
    /// A tool whose calls name no files, with a deadline of a minute.
    pub fn new<F, R>(name: &str, effect: ToolEffect, body: F) -> Self
    where
        F: Fn(ToolContext, String) -> R + Send + Sync + 'static,
        R: Future<Output = ToolResult> + Send + 'static,
    {
        let name = name.to_owned();
        let description = "For tests.".to_owned();
        let definition = ToolDefinition {
            name,
            description,
            schema: r#"{"type":"object"}"#.into(),
            effect,
        };
        let body: Arc<Body> = Arc::new(move |cx, arguments| Box::pin(body(cx, arguments)));
        let deadline = Duration::from_secs(60);
        let touches = Vec::new();
        Self {
            definition,
            deadline,
            touches,
            for_clients: false,
            canonical: None,
            body,
            ran: Arc::default(),
        }
    }

    /// Sets another deadline.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the resources that every call names.
    #[must_use]
    pub fn touching(mut self, touches: Vec<Touch>) -> Self {
        self.touches = touches;
        self
    }

    /// Lets clients of the pod call it, too.
    #[must_use]
    pub fn for_clients(mut self) -> Self {
        self.for_clients = true;
        self
    }

    /// Sets the canonical form of the arguments of every call.
    #[must_use]
    pub fn canonical(mut self, arguments: &str) -> Self {
        self.canonical = Some(arguments.to_owned());
        self
    }

    /// Sets another description for the model.
    #[must_use]
    pub fn described(mut self, words: &str) -> Self {
        self.definition.description = words.to_owned();
        self
    }

    /// The calls that ran, in the order in which they started.
    #[must_use]
    pub fn ran(&self) -> Vec<CallId> {
        self.ran
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Tool for FnTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn prepare(&self, raw: &str) -> Result<Prepared, ArgumentError> {
        let body = Arc::clone(&self.body);
        let ran = Arc::clone(&self.ran);
        let arguments = raw.to_owned();
        let canonical = self.canonical.as_deref().unwrap_or(raw);
        Ok(Prepared::new(
            canonical.into(),
            self.touches.clone(),
            move |cx| {
                ran.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(cx.call);
                body(cx, arguments)
            },
        ))
    }
}
