//! The built-ins through the door: what is on the surface, what it costs, what each grant gives.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests stand at the composition root"
)]

use authority::{Access, Confinement, EnvPolicy, SandboxMode, Spawner, Workspace};
use llm_worker::tool::{CallHost, DirectoryMove, Excerpt, FileChange, LineRange};
use llm_worker::{CallId, ErrorKind, ToolContext, ToolError, ToolResult};
use pod::feature::{
    CapabilityPolicy, DiagnosticCode, FeatureInstallError, FeatureRegistry, FeatureRegistryBuilder,
    HostCapability, HostServices, InstallOutcome, RegistrarCall,
};
use pod::hook::PreRequest;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{ModelScript, PodUnderTest};
use tokio_util::sync::CancellationToken;

/// The tools of `builtin:task`.
const TASKS: [&str; 4] = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];

/// What the defaults of the program grant.
fn defaults() -> CapabilityPolicy {
    let files = builtins::files::ID;
    let search = builtins::search::ID;
    let shell = builtins::shell::ID;
    let task = builtins::task::ID;
    [
        (task.clone(), HostCapability::tool("*")),
        (task.clone(), HostCapability::SESSION_STATE),
        (task.clone(), HostCapability::hook::<PreRequest>()),
        (task, builtins::task::NOTIFY),
        (files.clone(), HostCapability::tool("*")),
        (files, HostCapability::WRITE_WORKSPACE),
        (search.clone(), HostCapability::tool("*")),
        (search, HostCapability::READ_WORKSPACE),
        (shell.clone(), HostCapability::tool("*")),
        (shell.clone(), HostCapability::ANY_PROGRAM),
        (shell, HostCapability::READ_WORKSPACE),
    ]
    .into_iter()
    .fold(CapabilityPolicy::nothing(), |policy, (id, capability)| {
        policy.grant(id, capability, "default")
    })
}

fn services(dir: &Path) -> HostServices {
    let ambient = ambient::claim();
    let workspace = Workspace::open(&ambient, dir, dir, Access::ReadWrite).unwrap();
    let off = Confinement {
        mode: SandboxMode::Off,
        read: Vec::new(),
        write: Vec::new(),
    };
    let env = EnvPolicy::from_vars(std::env::vars_os(), &[]).unwrap();
    let spawner = Spawner::new(&ambient, off, env, "test/1".into()).unwrap();
    let pod = PodUnderTest::new(&ambient, ModelScript::new([]), Vec::new());
    let link = pod.opening(pod.resume().unwrap()).unwrap().link();
    HostServices::none()
        .root(HostCapability::WORKSPACE, workspace)
        .spawner(spawner)
        .link(link)
}

fn words(remedy: builtins::PathRemedy<'_>) -> String {
    format!("{remedy:?}")
}

fn install(policy: CapabilityPolicy, dir: &Path) -> FeatureRegistry {
    FeatureRegistryBuilder::new(policy)
        .with_all(builtins::all(words))
        .install(&services(dir))
}

fn names(registry: &FeatureRegistry) -> Vec<String> {
    registry
        .tools()
        .definitions()
        .into_iter()
        .map(|d| d.name)
        .collect()
}

#[derive(Default)]
struct Host {
    written: Mutex<Vec<u8>>,
}

#[async_trait::async_trait]
impl CallHost for Host {
    fn write_output(&self, bytes: &[u8]) -> Result<(), ToolError> {
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn read_output(&self, handle: &str, _: LineRange) -> Result<Excerpt, ToolError> {
        Ok(Excerpt {
            text: format!("of {handle}\n"),
            first: 1,
            last: 1,
            total: 1,
        })
    }

    async fn file_changing(&self, _: FileChange) -> Result<u64, ToolError> {
        Ok(1)
    }

    async fn directory_moving(&self, _: DirectoryMove) -> Result<(), ToolError> {
        Ok(())
    }
}

/// Runs one call as the pod does: parsed once, then run; what it wrote comes behind its summary.
fn call(registry: &FeatureRegistry, tool: &str, arguments: &str) -> ToolResult {
    let host = Arc::new(Host::default());
    let cx = ToolContext {
        call: CallId::new(1).unwrap(),
        cancel: CancellationToken::new(),
        deadline: Duration::from_secs(60),
        host: Arc::clone(&host) as Arc<dyn CallHost>,
    };
    let prepared = registry
        .tools()
        .get(tool)
        .unwrap()
        .tool
        .prepare(arguments)
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut output = runtime.block_on(prepared.run(cx))?;
    output
        .content
        .push_str(&String::from_utf8_lossy(&host.written.lock().unwrap()));
    Ok(output)
}

#[test]
fn eight_tools_are_on_the_surface_and_each_does_its_work() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    let registry = install(defaults(), dir.path());
    let tools = ["Bash", "Edit", "Glob", "Grep", "List", "Read", "ReadOutput"];
    assert_eq!(names(&registry), [&tools[..], &TASKS, &["Write"]].concat());
    assert!(
        registry
            .report()
            .features
            .iter()
            .all(|f| f.outcome == InstallOutcome::Installed),
        "{:#?}",
        registry.report()
    );

    // tool, arguments, what is in summary or content
    let calls = [
        ("List", "{}", "a.txt"),
        ("Glob", r#"{"pattern":"*.txt"}"#, "a.txt"),
        ("Grep", r#"{"pattern":"tw."}"#, "a.txt:2:two"),
        ("Read", r#"{"path":"a.txt"}"#, "2\ttwo"),
        (
            "Edit",
            r#"{"path":"a.txt","edits":[{"old":"two","new":"three"}]}"#,
            "1 replacement",
        ),
        (
            "Write",
            r#"{"path":"new/b.txt","content":"b\n"}"#,
            "created",
        ),
        (
            "Bash",
            r#"{"command":"cat a.txt new/b.txt"}"#,
            "one\nthree\nb\n",
        ),
        ("ReadOutput", r#"{"handle":"h1"}"#, "of h1"),
    ];
    for (tool, arguments, expected) in calls {
        let output =
            call(&registry, tool, arguments).unwrap_or_else(|error| panic!("{tool}: {error}"));
        assert!(
            format!("{}\n{}", output.summary, output.content).contains(expected),
            "{tool}: {output:?}"
        );
    }
}

#[test]
fn the_surface_stays_within_its_budget() {
    let dir = tempfile::tempdir().unwrap();
    let registry = install(defaults(), dir.path());
    let tools: usize = registry
        .tools()
        .definitions()
        .iter()
        .map(|d| {
            let schema: serde_json::Value = serde_json::from_str(&d.schema).unwrap();
            let function = serde_json::json!({"name": d.name, "description": d.description, "parameters": schema});
            serde_json::json!({"type": "function", "function": function}).to_string().len()
        })
        .sum();
    let instructions: usize = registry
        .instructions()
        .iter()
        .map(|i| i.text.len() + 1)
        .sum();
    // 8 kB for the whole first request; the host's own words and the question get the rest.
    assert!(
        tools + instructions <= 6_000,
        "{tools} bytes of tools and {instructions} of instructions"
    );
}

#[test]
fn each_grant_that_is_missing_takes_what_it_must() {
    let dir = tempfile::tempdir().unwrap();
    let files = builtins::files::ID;
    let search = builtins::search::ID;
    let shell = builtins::shell::ID;
    type Case = (
        CapabilityPolicy,
        &'static [&'static str],
        [InstallOutcome; 4],
    );
    use InstallOutcome::{Degraded, Disabled, Installed, Skipped};
    let cases: Vec<Case> = vec![
        (CapabilityPolicy::nothing(), &[], [Skipped; 4]),
        (
            defaults().refuse(files, HostCapability::WRITE_WORKSPACE, "user.toml"),
            &[
                "Bash",
                "Glob",
                "Grep",
                "List",
                "Read",
                "ReadOutput",
                TASKS[0],
                TASKS[1],
                TASKS[2],
                TASKS[3],
            ],
            [Degraded, Installed, Installed, Installed],
        ),
        (
            defaults().refuse(shell.clone(), HostCapability::ANY_PROGRAM, "user.toml"),
            &[
                "Edit", "Glob", "Grep", "List", "Read", TASKS[0], TASKS[1], TASKS[2], TASKS[3],
                "Write",
            ],
            [Installed, Installed, Skipped, Installed],
        ),
        (
            defaults()
                .refuse(shell, HostCapability::tool("Bash"), "user.toml")
                .disable(search, "user.toml"),
            &[
                "Edit",
                "List",
                "Read",
                "ReadOutput",
                TASKS[0],
                TASKS[1],
                TASKS[2],
                TASKS[3],
                "Write",
            ],
            [Installed, Disabled, Degraded, Installed],
        ),
    ];
    for (n, (policy, tools, outcomes)) in cases.into_iter().enumerate() {
        let registry = install(policy, dir.path());
        assert_eq!(names(&registry), tools, "case {n}");
        let found: Vec<_> = registry
            .report()
            .features
            .iter()
            .map(|f| f.outcome)
            .collect();
        assert_eq!(found, outcomes, "case {n}: {:#?}", registry.report());
    }
}

#[test]
fn a_failure_in_any_call_of_a_built_in_leaves_others_intact() {
    let dir = tempfile::tempdir().unwrap();
    let all = names(&install(defaults(), dir.path()));
    for victim in [
        builtins::files::ID,
        builtins::search::ID,
        builtins::shell::ID,
        builtins::task::ID,
    ] {
        let alone = FeatureRegistryBuilder::new(defaults().disable(victim.clone(), "test"))
            .with_all(builtins::all(words));
        let without = names(&alone.install(&services(dir.path())));
        for fail_at in 1.. {
            let failing = victim.clone();
            let probe = move |call: RegistrarCall<'_>| {
                let hit = *call.feature == failing && call.number == fail_at;
                if hit {
                    Err(FeatureInstallError::failed("injected"))
                } else {
                    Ok(())
                }
            };
            let builder = FeatureRegistryBuilder::new(defaults())
                .with_all(builtins::all(words))
                .probe(Arc::new(probe));
            let registry = builder.install(&services(dir.path()));
            let report = registry.report().feature(&victim).unwrap();
            if report.outcome == InstallOutcome::Installed {
                assert!(fail_at > 2, "{victim} made {} calls", fail_at - 1);
                assert_eq!(names(&registry), all);
                break;
            }
            assert_eq!(report.diagnostics[0].code, DiagnosticCode::InstallFailed);
            assert_eq!(names(&registry), without, "{victim} at call {fail_at}");
        }
    }
}

#[test]
fn descriptors_are_pure_and_fit() {
    for module in builtins::all(words) {
        let descriptor = module.descriptor();
        assert_eq!(descriptor, module.descriptor());
        assert_eq!(descriptor.problems(), Vec::<String>::new());
    }
}

#[test]
fn what_a_call_names_is_what_its_arguments_say() {
    use llm_worker::tool::Touch::{self, Read, Session, Shell, Write};
    let dir = tempfile::tempdir().unwrap();
    let registry = install(defaults(), dir.path());
    let cases: [(&str, &str, Option<Touch>); 11] = [
        ("Read", r#"{"path":"../x"}"#, Some(Read("../x".into()))),
        ("List", r#"{"path":"d"}"#, Some(Read("d".into()))),
        ("List", "{}", Some(Read(".".into()))),
        (
            "Glob",
            r#"{"pattern":"*","path":"d"}"#,
            Some(Read("d".into())),
        ),
        (
            "Grep",
            r#"{"pattern":"x","path":"d"}"#,
            Some(Read("d".into())),
        ),
        (
            "Write",
            r#"{"path":".env","content":""}"#,
            Some(Write(".env".into())),
        ),
        ("Bash", r#"{"command":"ls"}"#, Some(Shell("ls".into()))),
        ("ReadOutput", r#"{"handle":"h"}"#, None),
        ("TaskCreate", r#"{"title":"t"}"#, Some(Session)),
        ("TaskUpdate", r#"{"id":1}"#, Some(Session)),
        ("TaskList", "{}", None),
    ];
    for (tool, arguments, expected) in cases {
        let prepared = registry
            .tools()
            .get(tool)
            .unwrap()
            .tool
            .prepare(arguments)
            .unwrap();
        match expected {
            Some(touch) => assert!(
                prepared.touches.contains(&touch),
                "{tool} {arguments}: {:?}",
                prepared.touches
            ),
            None => assert!(
                prepared.touches.is_empty(),
                "{tool}: {:?}",
                prepared.touches
            ),
        }
    }
    let outside = call(&registry, "Read", r#"{"path":"/etc/hostname"}"#).unwrap_err();
    assert_eq!(
        outside.kind,
        ErrorKind::Denied,
        "the tool refuses too, whoever allowed it"
    );
}
