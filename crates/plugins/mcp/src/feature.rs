//! A server as a module of the registry: its descriptor is made from the pin, and nothing starts before a call.

use crate::connection::{Connection, Greeted, probe};
use crate::definition::{Fitted, Own};
use crate::exchange::{Called, Fault, Gone, MAX_LINE};
use crate::http::{Http, address, reach, secret_headers};
use crate::outcome::{input_required, outcome};
use crate::pin::{Definitions, Launch, PinnedPrompt, PinnedTool, ServerPin};
use crate::prompts;
use crate::questions::{GATE, KEPT, Question, Questions};
use crate::resources;
use crate::server::{Server, ServerCall, Start, Unchanged, admit, environment, job};
use crate::wire::RpcError;
use authority::{Net, Secret, Spawner};
use llm_worker::{ErrorKind, ToolContext, ToolEffect, ToolError, ToolResult};
use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, FeatureRuntimeKind, HostCapability, ToolContribution,
};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The time before the host's deadline at which a server is killed, so that the host learns why; at most a tenth of it.
const MARGIN: Duration = Duration::from_millis(500);

/// The longest message of an error, in bytes.
const MAX_MESSAGE: usize = 8 << 10;

/// A server that a person added.
pub struct McpFeature {
    pin: Arc<ServerPin>,
    digest: String,
    descriptor: FeatureDescriptor,
    /// What each tool is to the server.
    own: Vec<Own>,
    /// By the names of their commands.
    prompts: Arc<BTreeMap<String, PinnedPrompt>>,
    source: String,
    cwd: PathBuf,
    unchanged: Unchanged,
}

impl McpFeature {
    /// A feature of a pin that is kept at `source` and has this digest, with what is different than the server says. It
    /// starts in the directory `cwd`. `unchanged` is asked before each call.
    pub fn new(
        pin: ServerPin,
        (source, digest): (String, String),
        cwd: PathBuf,
        unchanged: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> (Self, Vec<String>) {
        let Fitted {
            tools,
            mut problems,
        } = Fitted::of(&pin);
        let (commands, odd) = prompts::commands(&pin);
        problems.extend(odd);
        let mut builder = FeatureDescriptor::builder(Self::id(&pin.name))
            .display_name(pin.name.clone())
            .version(version(&pin))
            .runtime(FeatureRuntimeKind::McpBridge)
            .gate(&GATE)
            .state(&KEPT);
        let own = tools.iter().map(|(_, own)| own.clone()).collect();
        for (tool, _) in tools {
            builder = builder.foreign_tool(tool);
        }
        let mut prompts = BTreeMap::new();
        for (command, prompt) in commands {
            prompts.insert(command.name.clone(), prompt);
            builder = builder.command(command);
        }
        let mut descriptor = builder.build();
        descriptor.requested_capabilities = requests(&pin);
        let feature = Self {
            pin: Arc::new(pin),
            digest,
            descriptor,
            own,
            prompts: Arc::new(prompts),
            source,
            cwd,
            unchanged: Arc::new(unchanged),
        };
        (feature, problems)
    }

    /// The id of the feature of a server.
    ///
    /// # Panics
    /// Never for a name that [`crate::is_server_name`] accepts.
    #[must_use]
    pub fn id(server: &str) -> FeatureId {
        const UNNAMED: FeatureId = FeatureId::user("mcp-server");
        format!("plugin:mcp/{server}").parse().unwrap_or(UNNAMED)
    }

    /// What it is started with, from the handles that were granted.
    fn start(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<Start, FeatureInstallError> {
        let launch = &self.pin.launch;
        let mut services = ctx.services();
        if let Some(url) = &launch.url {
            let url = address(url).map_err(FeatureInstallError::failed)?;
            let net = match url.base().is_public() {
                true => services.network()?,
                false => services.endpoints()?,
            };
            let secrets = secret_headers(launch, |id| services.secret(id))?;
            return Ok(Start::Http { url, net, secrets });
        }
        let spawner = services.programs(launch.network)?.with_guarded_path();
        let named = launch.secrets.iter();
        let secrets = named.map(|(name, id)| Ok((name.clone(), services.secret(id)?)));
        let secrets = secrets.collect::<Result<_, FeatureInstallError>>()?;
        let cwd = self.cwd.clone();
        Ok(Start::Child {
            spawner,
            secrets,
            cwd,
        })
    }
}

/// What a server is started with to ask it once.
pub enum Once {
    /// A child in the directory `cwd`, with variables that have secrets.
    Child {
        spawner: Spawner,
        secrets: Vec<(OsString, OsString)>,
        cwd: PathBuf,
    },
    /// One on the network, with its secrets by name.
    Http {
        net: Net,
        secrets: BTreeMap<String, Secret>,
    },
}

/// Starts a server once and asks it for its definitions, as at its first call.
///
/// # Errors
/// It does not start, or does not speak the protocol; with what it wrote to its standard error.
pub async fn ask_once(
    name: &str,
    launch: &Launch,
    once: Once,
    limit: Duration,
) -> Result<(Greeted, Definitions, Vec<String>), Gone> {
    let until = Instant::now() + limit;
    let (mut server, greeted) = match once {
        Once::Child {
            spawner,
            secrets,
            cwd,
        } => child_once(name, launch, &spawner, &secrets, &cwd, until).await?,
        Once::Http { net, secrets } => {
            let url = address(launch.url.as_deref().unwrap_or_default()).map_err(Gone)?;
            let secret = |id: &str| secrets.get(id).cloned().ok_or_else(|| unknown(id));
            let headers = secret_headers(launch, secret)?;
            let mut server = Connection::of_http(Http::new(&url, net, headers));
            let greeted = server.greet_any(until).await?;
            (server, greeted)
        }
    };
    let listed = server.definitions(greeted.has, until).await;
    let listed = listed.map_err(|gone| gone.with_stderr(&server.stderr()));
    server.end().await;
    listed.map(|(defined, problems)| (greeted, defined, problems))
}

fn unknown(secret: &str) -> Gone {
    Gone(format!("there is no secret `{secret}`"))
}

async fn child_once(
    name: &str,
    launch: &Launch,
    spawner: &Spawner,
    secrets: &[(OsString, OsString)],
    cwd: &Path,
    until: Instant,
) -> Result<(Connection, Greeted), Gone> {
    let programs = launch.command.first().map(OsString::from);
    let programs: Vec<OsString> = programs.into_iter().collect();
    let spawner = spawner
        .limited(&programs, launch.network)
        .map_err(|error| Gone(error.to_string()))?;
    let spawner = spawner.with_guarded_path();
    admit(&spawner, launch)?;
    let start = async || {
        let mut env = environment(launch);
        env.vars.extend(secrets.iter().cloned());
        spawner
            .talk_with(job(name, launch, cwd.to_owned()), env, MAX_LINE)
            .await
    };
    probe(name, until, start).await
}

/// What a server says of its version where that is one, since people and reports expect three numbers.
fn version(pin: &ServerPin) -> String {
    let version = semver::Version::parse(&pin.server.version);
    version.map_or_else(|_| "0.0.0".to_owned(), |version| version.to_string())
}

fn requests(pin: &ServerPin) -> Vec<CapabilityRequest> {
    let needs = match &pin.launch.url {
        Some(url) => reach(url).ok(),
        None => Some(HostCapability::Process {
            programs: pin
                .launch
                .command
                .iter()
                .take(1)
                .map(|program| Cow::from(program.clone()))
                .collect(),
            network: pin.launch.network,
        }),
    };
    // An address that is none is refused when the feature is installed.
    let needs = needs.map(|needs| CapabilityRequest::required(needs, "reach the server"));
    let mut requests: Vec<_> = needs.into_iter().collect();
    for id in pin.launch.secret_names() {
        let secret = HostCapability::SecretRef {
            id: id.clone().into(),
            hosts: Cow::Borrowed(&[]),
        };
        if !requests.iter().any(|request| request.capability == secret) {
            requests.push(CapabilityRequest::required(
                secret,
                "give the server its key",
            ));
        }
    }
    requests
}

impl FeatureModule for McpFeature {
    fn descriptor(&self) -> FeatureDescriptor {
        self.descriptor.clone()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let start = self.start(ctx)?;
        // There is no pod where a plan is tried.
        let notes = ctx
            .pod_name()
            .is_some()
            .then(|| ctx.diagnostics().later())
            .transpose()?;
        let server = Arc::new(Server::new(
            Arc::clone(&self.pin),
            start,
            Arc::clone(&self.unchanged),
            notes,
        ));
        let id = self.descriptor.id.clone();
        let questions = Questions::new(&self.pin, id, ctx.state(&KEPT)?);
        let questions = Arc::new(questions);
        ctx.hooks().gate(&GATE, &questions, Questions::gate)?;
        let prompts = Arc::clone(&self.prompts);
        let of_prompts = Arc::clone(&server);
        ctx.make_commands(Arc::new(move |name, typed| {
            let server = Arc::clone(&of_prompts);
            let prompts = Arc::clone(&prompts);
            Box::pin(async move {
                let prompt = prompts.get(&name).ok_or("its server has no such prompt")?;
                prompts::text(&server, prompt, &typed).await
            })
        }));
        for (declared, own) in self.descriptor.declared_tools.iter().zip(&self.own) {
            let is_own = |tool: &&PinnedTool| matches!(own, Own::Tool(name) if *name == tool.name);
            let pinned = self.pin.tools.iter().find(is_own);
            let tool = Arc::new(ServerTool {
                server: Arc::clone(&server),
                questions: Arc::clone(&questions),
                shown: declared.name.clone(),
                own: own.clone(),
                effect: declared.effect,
                output: pinned.and_then(|tool| tool.output_schema.clone()),
            });
            let run = move |arguments, cx| Arc::clone(&tool).call(arguments, cx);
            ctx.tools().register(ToolContribution::of_text(
                self.descriptor.id.clone(),
                declared,
                run,
            ))?;
        }
        Ok(())
    }

    fn source(&self) -> Cow<'static, str> {
        self.source.clone().into()
    }

    fn body(&self) -> Option<String> {
        Some(self.digest.clone())
    }
}

/// A tool that a server answers.
struct ServerTool {
    server: Arc<Server>,
    questions: Arc<Questions>,
    /// Its name before models.
    shown: String,
    own: Own,
    effect: ToolEffect,
    output: Option<Value>,
}

impl ServerTool {
    async fn call(self: Arc<Self>, arguments: Arc<str>, cx: ToolContext) -> ToolResult {
        let begun = Instant::now();
        let until = begun + cx.deadline.saturating_sub(MARGIN.min(cx.deadline / 10));
        match &self.own {
            Own::Tool(name) => self.tool(name, &arguments, &cx, (begun, until)).await,
            Own::Resources => self.resources(&arguments, &cx, until).await,
        }
    }

    /// Lists resources, or reads one.
    async fn resources(&self, arguments: &str, cx: &ToolContext, until: Instant) -> ToolResult {
        let wanted: resources::ResourceWish = serde_json::from_str(arguments)
            .map_err(|error| ToolError::new(ErrorKind::FixInput, error.to_string()))?;
        let request = match &wanted.uri {
            Some(uri) => ServerCall::Resource { uri },
            None => ServerCall::Resources {
                cursor: wanted.cursor.as_deref(),
            },
        };
        let called = self.asked(&request, cx, until).await?;
        let result = called.answer.map_err(refused)?;
        if input_required(&result).is_some() {
            let text = "the server asks a person before it gives this resource, which yoi does not pass on";
            return Err(ToolError::new(ErrorKind::Unavailable, text));
        }
        match wanted.uri {
            Some(_) => resources::read(&result),
            None => resources::listed(&result),
        }
    }

    /// Asks the server, and shows what the person has to know beside the answer.
    async fn asked(
        &self,
        request: &ServerCall<'_>,
        cx: &ToolContext,
        until: Instant,
    ) -> Result<Called, ToolError> {
        // The answer to a question goes to no other call.
        let has_answer = matches!(
            request,
            ServerCall::Tool {
                answered: Some(_),
                ..
            }
        );
        let called = async {
            match self.effect == ToolEffect::ReadOnly && !has_answer {
                true => self.server.read(request, until).await,
                false => self.server.call(request, until).await,
            }
        };
        let called = tokio::select! {
            called = called => called,
            () = cx.cancel.cancelled() => {
                let text = match self.effect {
                    ToolEffect::ReadOnly => "cancelled".to_owned(),
                    ToolEffect::Idempotent | ToolEffect::Effectful => {
                        format!("cancelled; its server was ended{}", self.in_doubt())
                    }
                };
                return Err(ToolError::new(ErrorKind::Cancelled, text));
            }
        };
        let called = called.map_err(|fault| self.failed(fault))?;
        called.warning.iter().for_each(|text| cx.host.warn(text));
        Ok(called)
    }

    async fn tool(
        &self,
        name: &str,
        arguments: &str,
        cx: &ToolContext,
        (begun, until): (Instant, Instant),
    ) -> ToolResult {
        let about = self.questions.about(&self.shown, arguments);
        let answered = self.questions.answered(cx.call, &about).await?;
        let arguments = RawValue::from_string(arguments.to_owned());
        let arguments =
            arguments.map_err(|error| ToolError::new(ErrorKind::Bug, error.to_string()))?;
        let request = ServerCall::Tool {
            name,
            arguments: &arguments,
            answered: answered.as_ref(),
        };
        let Called { answer, asked, .. } = self.asked(&request, cx, until).await?;
        let result = answer.map_err(refused)?;
        let show = |bytes: &[u8]| cx.host.attach("", bytes);
        let output = self.output.as_ref();
        let (given, warning) = outcome(&result, output, begun.elapsed(), &show);
        if let Some(asked) = asked.map(Ok).or_else(|| input_required(&result)) {
            let question = asked.and_then(|asked| Question::of(&about, asked));
            let content = match given {
                // One of the older era, which did without an answer: the call has happened.
                Ok(_) => {
                    cx.host.warn(&self.questions.unanswered(question).await);
                    warning.iter().for_each(|text| cx.host.warn(text));
                    return given;
                }
                Err(error) => error.content,
            };
            return Err(ToolError {
                content,
                ..self.questions.keep(question).await
            });
        }
        warning.iter().for_each(|text| cx.host.warn(text));
        given
    }

    fn failed(&self, fault: Fault) -> ToolError {
        let doubt = self.in_doubt();
        let (kind, text) = match fault {
            Fault::Changed(why) => (ErrorKind::Denied, why),
            Fault::NotStarted(why) => (
                ErrorKind::Unavailable,
                format!("nothing was called: the server of this tool did not start: {why}"),
            ),
            Fault::Died(why) => (
                ErrorKind::Unavailable,
                format!("the server of this tool is gone: {why}{doubt}"),
            ),
            Fault::Late => (
                ErrorKind::Exhausted,
                format!("the server did not answer in time and was ended{doubt}"),
            ),
            Fault::PodEnded => (ErrorKind::Unavailable, "the pod has ended".to_owned()),
        };
        ToolError::new(
            kind,
            authority::text::escape_within(&text, authority::text::Lines::One, MAX_MESSAGE),
        )
    }

    /// What is said of a call that was cut off.
    fn in_doubt(&self) -> &'static str {
        match self.effect {
            ToolEffect::ReadOnly => "",
            ToolEffect::Idempotent | ToolEffect::Effectful => {
                "; the call may have happened: check before you call it again"
            }
        }
    }
}

/// An error that a server answered with, or why it was not asked.
fn refused(error: RpcError) -> ToolError {
    let text =
        authority::text::escape_within(&error.message, authority::text::Lines::Many, MAX_MESSAGE);
    let text = match error.is_unsent {
        true => format!("nothing was called: {text}"),
        false => format!("the server answered with error {}: {text}", error.code),
    };
    ToolError::new(ErrorKind::FixInput, text)
}
