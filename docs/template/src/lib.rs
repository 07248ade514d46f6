//! Nothing is pushed before it was reviewed.

use pod::feature::author::*;

pub struct ReviewFirst;

const REVIEWED: ToolKey<Reviewed> = ToolKey::new(
    "Reviewed",
    ToolEffect::Idempotent,
    "Note that a branch was reviewed.",
)
.touching(|_| vec![Touch::Session]);
const BEFORE_PUSH: HookKey<PreToolCall> = HookKey::new("review-before-push");
const BRANCHES: StateKey<Vec<String>> = StateKey::new("branches", 1);

#[derive(Serialize, Deserialize, JsonSchema)]
struct Reviewed {
    /// The branch, as git names it.
    branch: String,
}

impl FeatureModule for ReviewFirst {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("review-first"))
            .version(env!("CARGO_PKG_VERSION"))
            .tool(&REVIEWED)
            .gate(&BEFORE_PUSH)
            .state(&BRANCHES)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let live = Arc::new(Live {
            branches: ctx.state(&BRANCHES)?,
        });
        ctx.tools().implement(&REVIEWED, &live, Live::reviewed)?;
        ctx.hooks().gate(&BEFORE_PUSH, &live, Live::judge)?;
        Ok(())
    }
}

struct Live {
    branches: DurableState<Vec<String>>,
}

impl Live {
    async fn reviewed(self: Arc<Self>, args: Reviewed, _: ToolContext) -> ToolResult {
        let note = |branches: &mut Vec<String>| {
            branches.retain(|known| *known != args.branch);
            branches.push(args.branch);
            branches.len()
        };
        let many = self.branches.update(note).await?;
        Ok(ToolOutput {
            summary: format!("{many} reviewed"),
            ..ToolOutput::default()
        })
    }

    fn judge(&self, call: &ToolCallView) -> Verdict<PreToolCall> {
        let Some(command) = call.touches.iter().find_map(Touch::command) else {
            return Verdict::allow();
        };
        let reviewed = self
            .branches
            .read()
            .iter()
            .any(|branch| command.contains(branch));
        match command.contains("git push") && !reviewed {
            true => Verdict::deny(
                "this branch was not reviewed; read its diff and call Reviewed, then push",
            ),
            false => Verdict::allow(),
        }
    }
}
