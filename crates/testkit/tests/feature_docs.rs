//! `docs/FEATURES.md`: its example is the template, and every line of its other code is in a feature that runs.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a rig that fails is a failed test"
)]

#[path = "feature_docs/around.rs"]
mod around;
#[path = "feature_docs/enricher.rs"]
mod enricher;
#[path = "feature_docs/json_service.rs"]
mod json_service;
#[path = "feature_docs/settings.rs"]
mod settings;

use pod::feature::author::*;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use testkit::{FeatureHost, FnTool, conformance, killed_anywhere};

const TELL: HostCapability = HostCapability::EmitModelNotification {
    max_bytes: 400,
    per_turn: 2,
};
const NEEDS_WRITING: &[HostCapability] = &[HostCapability::WRITE_WORKSPACE];

#[derive(Serialize, Deserialize, JsonSchema)]
struct Publish {
    /// The file, relative to the project.
    path: std::path::PathBuf,
    /// How many copies.
    #[serde(default)]
    copies: u8,
}

const PUBLISH: ToolKey<Publish> = ToolKey::new("Publish", ToolEffect::Effectful, "Publish a file.")
    .touching(|args: &Publish| vec![Touch::Write(args.path.clone())])
    .deadline(Duration::from_secs(300))
    .needs(NEEDS_WRITING);

const REFRESH: TaskKey = TaskKey::new("refresh", ToolEffect::ReadOnly)
    .cron("0 9 * * 1-5", "Europe/Berlin")
    .on_request()
    .restart(Restart::OnFailure {
        max: 3,
        within: HOUR,
        backoff: MINUTE,
    });
const HOUR: Duration = Duration::from_secs(60 * 60);
const MINUTE: Duration = Duration::from_secs(60);

const SHORTER: HookKey<ToolOutcome> = HookKey::new("shorter").tools(&["Fetch"]);
const WATCH: HookKey<Event> = HookKey::new("watch");
const SEEN: StateKey<Seen> = StateKey::new("seen", 2).migrating(|version, old| match version {
    1 => old
        .as_u64()
        .map(|calls| Seen { calls })
        .ok_or_else(|| "not a number".to_owned()),
    other => Err(format!("version {other} is unknown")),
});

#[derive(Clone, Default, Serialize, Deserialize)]
struct Seen {
    calls: u64,
}

struct Press;

impl FeatureModule for Press {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("press"))
            .version("0.1.0")
            .request(CapabilityRequest::optional(
                HostCapability::WRITE_WORKSPACE,
                "to publish files",
            ))
            .request(CapabilityRequest::required(
                TELL,
                "to say when a file is old",
            ))
            .request(CapabilityRequest::optional(
                HostCapability::EmitUserAlert,
                "to warn people",
            ))
            .tool(&PUBLISH)
            .transform(&SHORTER)
            .observe(&WATCH)
            .background_task(&REFRESH)
            .state(&SEEN)
            .instruction("press", "Publish only what was asked for.")
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let files = ctx.services().fs(HostCapability::WORKSPACE).ok();
        let notify = ctx.notifications()?;
        let alerts = ctx.alerts().ok();
        let notes = ctx.diagnostics().later()?;
        let refresh = ctx.background_tasks().handle(&REFRESH).ok();
        let seen = ctx.state(&SEEN)?;
        let heard = AtomicU64::new(0);
        let live = Arc::new(Live {
            files,
            notify,
            alerts,
            notes,
            seen,
            heard,
            refresh,
        });
        ctx.background_tasks().run(&REFRESH, &live, Live::refresh)?;
        ctx.tools().implement(&PUBLISH, &live, Live::publish)?;
        ctx.hooks().transform(&SHORTER, &live, Live::shorter)?;
        ctx.hooks().observe(&WATCH, &live, Live::watch)?;
        Ok(())
    }
}

struct Live {
    files: Option<Workspace>,
    notify: FeatureNotifySink,
    alerts: Option<FeatureAlertSink>,
    notes: RunningNotes,
    seen: DurableState<Seen>,
    heard: AtomicU64,
    refresh: Option<TaskHandle>,
}

impl Live {
    async fn publish(self: Arc<Self>, args: Publish, cx: ToolContext) -> ToolResult {
        let files = self
            .files
            .as_ref()
            .ok_or_else(|| ToolError::new(ErrorKind::Denied, "no files are granted"))?;
        let shown = files.show(&args.path);
        for copy in 0..args.copies {
            if cx.cancel.is_cancelled() {
                return Err(ToolError::new(
                    ErrorKind::Cancelled,
                    format!("{copy} copies are made"),
                ));
            }
            cx.host.write_output(format!("copy {copy}\n").as_bytes())?;
        }
        if args.copies > 9 {
            self.notify
                .notify_model(format!("{shown} is published more often than it is read."))
                .await?;
        }
        if let Some(alerts) = &self.alerts {
            alerts.alert(AlertLevel::Info, &format!("{shown} was published"))?;
        }
        self.notes.note("published")?;
        if let Some(refresh) = &self.refresh {
            refresh.run_now()?;
        }
        // Nobody waits for it: it rides with the next record.
        drop(self.seen.update(|seen| seen.calls += 1));
        Ok(ToolOutput {
            summary: format!("{shown}: {} copies", args.copies),
            content: String::new(),
            data: None,
        })
    }

    async fn refresh(self: Arc<Self>, _: BackgroundTaskContext) -> TaskResult {
        let calls = self.seen.read().calls;
        self.notify
            .wake_model_once(
                &format!("calls-{calls}"),
                format!("{calls} files were published."),
            )
            .await?;
        Ok(())
    }

    fn shorter(&self, view: &ToolOutcomeView) -> Change<ToolOutput> {
        match view.outcome.content.split_once("\n\n") {
            Some((head, _)) => Change::Replaced(ToolOutput {
                summary: view.outcome.summary.clone(),
                content: head.to_owned(),
                data: None,
            }),
            None => Change::Unchanged,
        }
    }

    fn watch(&self, event: &EventView) {
        if event.record.kind() == "tool_finished" {
            self.heard.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn fetch() -> FnTool {
    FnTool::new("Fetch", ToolEffect::ReadOnly, |_, _| async {
        Ok(ToolOutput {
            summary: "ok".to_owned(),
            content: "head\n\nbody".to_owned(),
            data: None,
        })
    })
}

/// Keeps texts; answers how many there are. In the crate of the contract, which both sides depend on.
pub trait Archive: Send + Sync {
    fn keep(&self, text: String) -> ServiceFuture<'_, usize>;
}

pub const ARCHIVE: ServiceKey<dyn Archive> = ServiceKey::new("example.archive.v1");

#[derive(Default)]
struct Shelf(std::sync::Mutex<Vec<String>>);

impl Archive for Shelf {
    fn keep(&self, text: String) -> ServiceFuture<'_, usize> {
        Box::pin(async move {
            let mut texts = self.0.lock().unwrap();
            texts.push(text);
            texts.len()
        })
    }
}

struct Library;

impl FeatureModule for Library {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("library"))
            .version("1.2.0")
            .provides(ServiceDeclaration::of(ARCHIVE, "1.2.0"))
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.services()
            .provide(ARCHIVE, Arc::new(Shelf::default()))?;
        Ok(())
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Archived {
    text: String,
}

const NEEDS_ARCHIVE: &[HostCapability] = &[ARCHIVE.admission()];
const KEEP: ToolKey<Archived> =
    ToolKey::new("Archive", ToolEffect::Effectful, "Keep a text.").needs(NEEDS_ARCHIVE);

struct Clerk;

impl FeatureModule for Clerk {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("clerk"))
            .version("0.1.0")
            .requires(ServiceRequirement::optional(ARCHIVE, "^1"))
            .tool(&KEEP)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        if let Ok(archive) = ctx.services().require(ARCHIVE) {
            ctx.tools()
                .implement(&KEEP, &Arc::new(Desk { archive }), Desk::keep)?;
        }
        Ok(())
    }
}

struct Desk {
    archive: ServiceHandle<dyn Archive>,
}

impl Desk {
    async fn keep(self: Arc<Self>, args: Archived, _: ToolContext) -> ToolResult {
        let many = self.archive.call(|archive| archive.keep(args.text)).await?;
        Ok(ToolOutput {
            summary: format!("{many} texts"),
            ..ToolOutput::default()
        })
    }
}

#[test]
fn a_service_is_used_and_done_without() {
    let mut host = FeatureHost::new().with(Library).install(Clerk);
    assert_eq!(
        host.call("Archive", json!({"text": "a"})).summary,
        "1 texts"
    );
    assert_eq!(
        FeatureHost::new()
            .install(Clerk)
            .report()
            .skipped_contributions[0]
            .name,
        "Archive"
    );
    conformance(|| Library).assert();
    conformance(|| Clerk)
        .on(|| FeatureHost::new().with(Library))
        .assert();
}

pub const KEPT: ServiceEventKey = ARCHIVE.event("kept");

/// A library that tells its readers.
struct Branch;

impl FeatureModule for Branch {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("branch"))
            .version("1.2.0")
            .provides(ServiceDeclaration::of(ARCHIVE, "1.2.0").emits(KEPT))
            .background_task(&RESTOCK)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.services()
            .provide(ARCHIVE, Arc::new(Shelf::default()) as Arc<dyn Archive>)?;
        let kept = ctx.services().event(KEPT).ok();
        ctx.background_tasks()
            .run(
                &RESTOCK,
                &Arc::new(Restocking { kept }),
                Restocking::restock,
            )
            .map(drop)
    }
}

const RESTOCK: TaskKey = TaskKey::new("restock", ToolEffect::Effectful).on_request();

struct Restocking {
    kept: Option<ServiceEventSink>,
}

impl Restocking {
    async fn restock(self: Arc<Self>, _: BackgroundTaskContext) -> TaskResult {
        if let Some(kept) = &self.kept {
            kept.emit()?;
        }
        Ok(())
    }
}

const COUNT: TaskKey = TaskKey::new("count", ToolEffect::ReadOnly).on_event(KEPT);

struct Reader;

impl Reader {
    async fn count(self: Arc<Self>, _: BackgroundTaskContext) -> TaskResult {
        Ok(())
    }
}

impl FeatureModule for Reader {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("reader"))
            .version("0.1.0")
            .requires(ServiceRequirement::optional(ARCHIVE, "^1"))
            .background_task(&COUNT)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        ctx.background_tasks()
            .run(&COUNT, &Arc::new(Reader), Reader::count)
            .map(drop)
    }
}

#[test]
fn an_event_of_a_service_is_emitted_and_heard() {
    let mut host = FeatureHost::new().with(Reader).install(Branch);
    host.run_task("restock").unwrap();
    let heard = FeatureHost::new().with(Branch).install(Reader);
    assert_eq!(
        heard.report().skipped_contributions.len(),
        0,
        "{:?}",
        heard.report()
    );
    for other in [FeatureHost::new(), FeatureHost::new().with(Library)] {
        assert_eq!(
            other.install(Reader).report().skipped_contributions[0].name,
            "count"
        );
    }
    conformance(|| Branch).assert();
    conformance(|| Reader)
        .on(|| FeatureHost::new().with(Branch))
        .assert();
}

#[test]
fn what_the_document_shows_works() {
    let mut host = FeatureHost::new().tool(fetch()).install(Press);
    assert_eq!(
        host.call("Publish", json!({"path": "a.md", "copies": 12}))
            .summary,
        "a.md: 12 copies"
    );
    assert_eq!(host.notifications().len(), 1);
    assert_eq!(host.alerts()[0].text, "a.md was published");
    assert_eq!(host.call("Fetch", json!({})).content, "head");
    host.restart();
    assert_eq!((host.notes().len(), host.state(&SEEN).calls), (1, 1));

    let mut host = FeatureHost::new()
        .deny(HostCapability::WRITE_WORKSPACE)
        .install(Press);
    assert_eq!(host.report().skipped_contributions[0].name, "Publish");
    assert_eq!(
        host.call("Publish", json!({"path": "a.md"})).status,
        ResultStatus::Error
    );
}

#[test]
fn the_documents_task_runs() {
    let mut host = FeatureHost::new().install(Press);
    host.run_task("refresh").unwrap();
    assert_eq!(host.notifications()[0].text, "0 files were published.");

    let mut host = FeatureHost::new()
        .deny(HostCapability::background_task("refresh"))
        .install(Press);
    assert_eq!(host.report().skipped_contributions[0].name, "refresh");
    assert_eq!(
        host.call("Publish", json!({"path": "a.md", "copies": 1}))
            .summary,
        "a.md: 1 copies"
    );
}

#[test]
fn no_kill_loses_what_was_promised() {
    let host = || FeatureHost::new().tool(fetch()).install(Press);
    let act = |host: &mut testkit::FeatureUnderTest| {
        drop(host.call("Publish", json!({"path": "a.md", "copies": 10})))
    };
    killed_anywhere(host, act, |host, place| {
        assert!(host.notifications().len() <= 1, "{place}");
    });
}

#[test]
fn it_keeps_the_contract() {
    conformance(|| Press)
        .example("Publish", json!({"path": "a.md", "copies": 2}))
        .assert();
}

fn read(path: &str) -> String {
    std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(path),
    )
    .unwrap()
}

/// The blocks of code in that language.
fn blocks(document: &str, language: &str) -> Vec<String> {
    let open = format!("```{language}\n");
    document
        .split(&open)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_documents_code_is_code_that_runs() {
    let document = read("docs/FEATURES.md");
    let code = blocks(&document, "rust");
    for file in [
        "docs/template/src/lib.rs",
        "docs/template/tests/review_first.rs",
    ] {
        assert!(
            code.contains(&read(file)),
            "no block of docs/FEATURES.md is {file}"
        );
    }
    let toml = blocks(&document, "toml");
    let dependencies = read("docs/template/Cargo.toml");
    let dependencies = &dependencies[dependencies.find("[dependencies]").unwrap()..];
    assert!(
        toml.iter().any(|block| block == dependencies),
        "the dependencies are not those of the template"
    );
    let compiled = read("docs/template/src/lib.rs")
        + &read("docs/template/tests/review_first.rs")
        + &read(file!());
    let beside = ["around", "enricher", "json_service", "settings"]
        .map(|file| read(&format!("crates/testkit/tests/feature_docs/{file}.rs")));
    let compiled = compiled + &beside.concat() + &read("docs/program/src/main.rs");
    let lines: Vec<&str> = compiled.lines().map(str::trim).collect();
    for line in code
        .iter()
        .flat_map(|block| block.lines())
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        assert!(
            lines.contains(&line),
            "this line of docs/FEATURES.md stands in no file that is compiled:\n{line}"
        );
    }
}

#[test]
fn the_template_is_small() {
    let lines = |file: &str| read(file).lines().count();
    let all = lines("docs/template/src/lib.rs") + lines("docs/template/tests/review_first.rs");
    assert!(all < 105, "{all} lines");
}
