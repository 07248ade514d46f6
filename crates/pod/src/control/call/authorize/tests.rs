//! Parsing, where tools hang in it or are taken back meanwhile.

use super::*;
use crate::feature::author::{
    Change, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HookKey, HostCapability, ToolEffect, ToolOutput,
};
use crate::feature::{
    CapabilityPolicy, FeatureRegistryBuilder, HostServices, Revoke, ToolContribution,
    ToolDeclaration,
};
use crate::permission::{Policy, SandboxState};
use authority::{Access, Door, SandboxMode, Workspace};
use llm_worker::tool::ArgumentError;
use llm_worker::{CallId, Tool, ToolDefinition};
use std::pin::pin;
use testkit::Latch;

const ID: FeatureId = FeatureId::user("parses");
const GATE: HookKey<PreToolCall> = HookKey::new("gate");
const REWRITE: HookKey<ToolArguments> = HookKey::new("rewrite");
const GRACE: Duration = Duration::from_millis(10);
/// As many as are judged at once.
const CALLS: u64 = 8;

/// Parses until its gate is open.
struct Parses(ToolDefinition, Latch);

fn parses(gate: &Latch) -> Arc<Parses> {
    let name = "Parse".to_owned();
    let description = "Parses.".to_owned();
    let schema = r#"{"type":"object"}"#.into();
    let definition = ToolDefinition {
        name,
        description,
        schema,
        effect: ToolEffect::ReadOnly,
    };
    Arc::new(Parses(definition, gate.clone()))
}

impl Tool for Parses {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn prepare(&self, raw: &str) -> Result<Prepared, ArgumentError> {
        self.1.pass_blocking();
        Ok(Prepared::new(raw.into(), Vec::new(), |_| {
            Box::pin(async { Ok(ToolOutput::default()) })
        }))
    }
}

/// The tool, and what else has a say in its calls.
struct Guarded {
    tool: Arc<Parses>,
    gated: bool,
    rewritten: bool,
}

impl FeatureModule for Guarded {
    fn descriptor(&self) -> FeatureDescriptor {
        let builder = FeatureDescriptor::builder(ID).version("1.0.0");
        let builder = builder.foreign_tool(ToolDeclaration::of(self.tool.0.clone()));
        let builder = if self.gated {
            builder.gate(&GATE)
        } else {
            builder
        };
        if self.rewritten {
            builder.transform(&REWRITE)
        } else {
            builder
        }
        .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.tools()
            .register(ToolContribution::new(ID, self.tool.clone(), Vec::new()))?;
        let live = Arc::new(());
        if self.gated {
            ctx.hooks()
                .gate(&GATE, &live, |(), _| crate::hook::Verdict::allow())?;
        }
        if self.rewritten {
            ctx.hooks()
                .transform(&REWRITE, &live, |(), _| Change::Unchanged)?;
        }
        Ok(())
    }
}

fn authorizer(
    runtime: &tokio::runtime::Runtime,
    gate: &Latch,
    gated: bool,
    rewritten: bool,
) -> Authorizer {
    let grants = [
        HostCapability::tool("*"),
        HostCapability::hook::<PreToolCall>(),
        HostCapability::hook::<ToolArguments>(),
        HostCapability::ANY_ARGUMENTS,
    ];
    let policy = grants
        .into_iter()
        .fold(CapabilityPolicy::nothing(), |policy, grant| {
            policy.grant(ID, grant, "test")
        });
    let module = Arc::new(Guarded {
        tool: parses(gate),
        gated,
        rewritten,
    });
    let registry = FeatureRegistryBuilder::new(policy)
        .with(module)
        .install(&HostServices::none());
    assert_eq!(
        registry.tools().iter().count(),
        1,
        "{:?}",
        registry.report()
    );
    let dir = tempfile::tempdir().unwrap();
    let workspace =
        Workspace::open(&ambient::claim(), dir.path(), dir.path(), Access::Read).unwrap();
    let now = SandboxState {
        mode: SandboxMode::ReadOnly,
        enforced: true,
    };
    Authorizer {
        registry: Arc::new(registry),
        permission: Arc::new(Permission {
            policy: Policy::new(crate::permission::tests::TERMS, Vec::new()),
            workspace,
            sandbox: now,
            person: Person::Never,
        }),
        callbacks: Callbacks::with_grace(runtime.handle().clone(), GRACE),
        generation: 1,
        going_on: None,
        turn: 1,
        key: "s/1".into(),
        clock: Arc::new(|| 0),
        slots: Arc::new(Semaphore::new(SLOTS)),
        in_order: Arc::default(),
    }
}

fn call(number: u64) -> CallView {
    CallView {
        id: CallId::new(number).unwrap(),
        name: "Parse".to_owned(),
        arguments: "{}".to_owned(),
    }
}

// The host judges, but the thread is in the tool's code.
#[test]
fn a_tool_that_never_has_parsed_its_arguments_is_written_off() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let callbacks = Callbacks::with_grace(runtime.handle().clone(), GRACE);
    let gate = Latch::new("parsed");
    let tool = parses(&gate);
    let definition = tool.0.clone();
    let deadline = Duration::from_secs(1);
    let door = Door::new();
    let registered = RegisteredTool {
        feature: ID,
        definition,
        tool,
        deadline,
        foreign: None,
        door,
        for_clients: false,
        category: None,
        enrichment: None,
        is_deferred: false,
    };
    let work = async move { prepare(&registered, "{}").map(drop) };
    let lost = runtime.block_on(async {
        callbacks
            .run(GRACE, CancellationToken::new(), work)
            .await
            .is_err()
    });
    assert!(lost && callbacks.is_disabled(&ID));
    gate.open();
}

// Calls that wait for their turn had been looked at before it came: each lost a thread, with a transform two.
#[test]
fn a_hanging_parser_costs_one_thread_only() {
    for (gated, rewritten) in [(true, false), (false, true), (true, true)] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let gate = Latch::new("parsed");
        let authorizer = authorizer(&runtime, &gate, gated, rewritten);
        let rules = runtime.block_on(async {
            let judged =
                (1..=CALLS).map(|number| tokio::spawn(authorizer.clone().judge(call(number))));
            let judged: Vec<_> = judged.collect();
            while !judged.iter().all(tokio::task::JoinHandle::is_finished) {
                // The clock goes on only while somebody holds a thread.
                if gate.came() > authorizer.callbacks.stuck() {
                    tokio::time::advance(DEADLINE).await;
                }
                tokio::task::yield_now().await;
            }
            let mut rules = Vec::new();
            for judged in judged {
                rules.push(judged.await.unwrap().rule);
            }
            rules
        });
        assert_eq!(
            (gate.came(), authorizer.callbacks.stuck()),
            (1, 1),
            "{gated} {rewritten}: {rules:?}"
        );
        assert!(
            rules
                .iter()
                .skip(1)
                .all(|rule| rule == "host:stuck-feature"),
            "{gated} {rewritten}: {rules:?}"
        );
        gate.open();
    }
}

// Whoever takes a tool back waits for its code, also where that only parses.
#[test]
fn parsing_is_over_when_the_tool_is_taken_back() {
    for how in [Revoke::Now, Revoke::Drain(Duration::from_secs(60))] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let gate = Latch::new("parsed");
        let authorizer = authorizer(&runtime, &gate, false, false);
        runtime.block_on(async {
            let parsing = tokio::spawn(authorizer.clone().judge(call(1)));
            while gate.came() == 0 {
                tokio::task::yield_now().await;
            }
            let mut revoking = pin!(authorizer.registry.revoke(
                &ID,
                &HostCapability::tool("Parse"),
                how
            ));
            tokio::select! {
                biased;
                _doors = &mut revoking => panic!("{how:?}: it is still parsing"),
                () = std::future::ready(()) => {}
            }
            // Both where the host looks first, and where it would parse.
            let early = authorizer.clone().judge(call(2)).await;
            let late = authorizer.by_the_host(&call(3));
            for refused in [early, late] {
                let words = "Parse was revoked: user:parses is no longer allowed to offer it";
                assert!(
                    matches!(&refused.verdict, CallVerdict::Refuse { reason } if reason == words),
                    "{how:?}: {refused:?}"
                );
                assert_eq!(refused.rule, "host:revoked", "{how:?}");
            }
            gate.open();
            assert_eq!((revoking.await, gate.came()), (1, 1), "{how:?}");
            parsing.await.unwrap();
        });
    }
}
