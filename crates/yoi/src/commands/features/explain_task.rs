//! `yoi features --explain TASK`: whether a background task is installed, when it runs, and what follows a run.

use super::availability::{Contribution, Mark, Part, Step, effect_text, render, time};
use super::capability_text::words;
use super::page::Page;
use super::table::trigger_text;
use host::compose::roots::Added;
use host::compose::{Composed, compose};
use host::config::Config;
use host::env::Env;
use host::exit::{Exit, Failure};
use host::hosting::session_location::now;
use llm_worker::ToolEffect;
use pod::feature::{
    BackgroundTaskDeclaration, FeatureDescriptor, HostCapability, PlannedFeature, Restart,
    TaskTrigger,
};
use pod::schedule::{Cron, Interval};
use pod::session::restore::utc;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// Due times that are shown of each schedule.
const DUE: usize = 3;

/// What decides about the runs of a background task.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TaskRoute {
    task: String,
    feature: String,
    /// Whether a run is safe to repeat.
    effect: ToolEffect,
    /// Whether a pod that `yoi start` started runs the task.
    installed: bool,
    triggers: Vec<ExplainedTrigger>,
    restart: Restart,
    deadline_ms: u64,
    /// What the feature must be granted for this task, in words.
    needs: Vec<String>,
    /// The result as text.
    conclusion: String,
    /// All decisions, in their order.
    steps: Vec<Step>,
}

/// A trigger in words.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainedTrigger {
    trigger: TaskTrigger,
    text: String,
    /// Of a schedule: the next due times in UTC, for a task that has not run before.
    next: Vec<String>,
}

/// The names by which [`find`] finds each background task: `FEATURE/NAME` where several features have the name.
pub(super) fn names(all: &[FeatureDescriptor]) -> Vec<String> {
    let tasks = || {
        all.iter().flat_map(|feature| {
            feature
                .declared_background_tasks
                .iter()
                .map(move |task| (feature, task))
        })
    };
    let is_unique = |name: &str| tasks().filter(|(_, task)| task.name == name).count() == 1;
    let shown = tasks().map(|(feature, task)| {
        if is_unique(&task.name) {
            task.name.clone()
        } else {
            format!("{}/{}", feature.id, task.name)
        }
    });
    shown.collect()
}

/// A background task with its feature, by its name or by `FEATURE/NAME`; none if no feature of this build has one.
pub(super) fn find<'a>(
    name: &str,
    all: &'a [FeatureDescriptor],
) -> Result<Option<(&'a FeatureDescriptor, &'a BackgroundTaskDeclaration)>, Failure> {
    let tasks = all.iter().flat_map(|feature| {
        feature
            .declared_background_tasks
            .iter()
            .map(move |task| (feature, task))
    });
    let full = |feature: &FeatureDescriptor, task: &BackgroundTaskDeclaration| {
        format!("{}/{}", feature.id, task.name)
    };
    let found: Vec<_> = tasks
        .filter(|(feature, task)| task.name == name || full(feature, task) == name)
        .collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|(feature, task)| full(feature, task))
                .collect();
            let what = format!("several features have a background task `{name}`");
            Err(Failure::new(Exit::Usage, what).help(format!("write one of: {}", names.join(", "))))
        }
    }
}

impl TaskRoute {
    /// Of a task of this build, with what would start.
    pub(super) fn of(
        feature: &FeatureDescriptor,
        task: &BackgroundTaskDeclaration,
        config: &Config,
        env: &Env,
    ) -> Result<Self, Failure> {
        let ambient = ambient::claim();
        let mut composed = compose(&ambient, config, env, Added::default())?;
        let no_shell = composed.spawner(&ambient, env, "explain")?.err();
        let plan = composed.plan();
        let planned = plan
            .features
            .iter()
            .find(|planned| planned.feature_id == feature.id);
        let (mut steps, installed) = planned.map_or((Vec::new(), false), |planned| {
            installed(feature, task, planned, config, &composed, no_shell)
        });
        let triggers = explained(task, now() / 1000);
        if installed {
            steps.extend(schedule(&triggers));
            steps.extend(runs(task));
        }
        let name = &task.name;
        let conclusion = if installed {
            format!(
                "{name} runs in each pod that `yoi start` starts; `yoi run` runs no background task"
            )
        } else {
            format!("{name} does not run")
        };
        Ok(Self {
            task: name.clone(),
            feature: feature.id.to_string(),
            effect: task.effect,
            installed,
            triggers,
            restart: task.restart,
            deadline_ms: task.deadline_ms,
            needs: task.all_needs().map(|needed| words(&needed)).collect(),
            conclusion,
            steps,
        })
    }

    pub(super) fn render(&self) -> Page {
        let mut page = Page::default();
        let effect = effect_text(self.effect, "run");
        let what = "code that yoi runs by itself, not as a call of the model";
        page.wrapped(
            "",
            &format!(
                "{} is a background task of {}: {what}; {effect}",
                self.task, self.feature
            ),
        );
        page.append(render(&self.steps, |part| match part {
            Part::Surface | Part::Judgement => "is the task installed?",
            Part::Schedule => "when does it run?",
            Part::Run => "how does it run?",
        }));
        page.wrapped("so ", &self.conclusion);
        page
    }
}

fn installed(
    feature: &FeatureDescriptor,
    task: &BackgroundTaskDeclaration,
    planned: &PlannedFeature,
    config: &Config,
    composed: &Composed,
    no_shell: Option<String>,
) -> (Vec<Step>, bool) {
    let own = HostCapability::ContributeBackgroundTask {
        name: task.name.clone().into(),
    };
    let needs: Vec<_> = task.all_needs().collect();
    let contribution = Contribution {
        feature,
        name: &task.name,
        own,
        needs: &needs,
    };
    let (steps, is_possible) = contribution.availability(planned, config, composed, no_shell);
    let is_planned = planned.outcome.is_live()
        && planned
            .background_tasks
            .iter()
            .any(|of| of.name == task.name);
    (steps, is_possible && is_planned)
}

/// The triggers, with their due times from now on.
fn explained(task: &BackgroundTaskDeclaration, now_ms: u64) -> Vec<ExplainedTrigger> {
    let explain = |trigger: &TaskTrigger| {
        let text = trigger_text(&serde_json::to_value(trigger).unwrap_or_default());
        let next = due(trigger, now_ms)
            .into_iter()
            .map(|ms| utc(ms.saturating_mul(1000)))
            .collect();
        ExplainedTrigger {
            trigger: trigger.clone(),
            text,
            next,
        }
    };
    task.triggers.iter().map(explain).collect()
}

/// The next due times of a trigger by the clock, for a task that has not run before.
fn due(trigger: &TaskTrigger, now_ms: u64) -> Vec<u64> {
    let next: Box<dyn Fn(u64) -> Option<u64>> = match trigger {
        TaskTrigger::Interval { every_ms } => {
            let interval = Interval::new(*every_ms);
            Box::new(move |after| Some(interval.next_after(None, after)))
        }
        TaskTrigger::Cron {
            expression,
            time_zone,
        } => match Cron::parse(expression, time_zone) {
            Ok(cron) => Box::new(move |after| cron.next_after(after)),
            // Planning refuses it, with the reason.
            Err(_) => return Vec::new(),
        },
        _other => return Vec::new(),
    };
    std::iter::successors(next(now_ms), |due| next(*due))
        .take(DUE)
        .collect()
}

fn schedule(triggers: &[ExplainedTrigger]) -> Vec<Step> {
    let step = |trigger: &ExplainedTrigger| {
        let ExplainedTrigger { text, next, .. } = trigger;
        let next = if next.is_empty() {
            String::new()
        } else {
            format!("; if it has not run before, next at {}", next.join(", "))
        };
        note(Part::Schedule, format!("{text}{next}"))
    };
    triggers.iter().map(step).collect()
}

fn runs(task: &BackgroundTaskDeclaration) -> Vec<Step> {
    let recorded = match task.effect {
        ToolEffect::ReadOnly | ToolEffect::Idempotent => "yoi records the end of each run",
        ToolEffect::Effectful => {
            "yoi records the start of each run before the run begins, and the end of the run"
        }
    };
    let texts = [
        format!(
            "the task has at most one run at a time; yoi cancels a run after {}",
            time(task.deadline_ms)
        ),
        restart_text(task.restart),
        recorded.to_owned(),
    ];
    texts
        .into_iter()
        .map(|text| note(Part::Run, text))
        .collect()
}

fn restart_text(restart: Restart) -> String {
    let text = |time: Duration| humantime::format_duration(time).to_string();
    match restart {
        Restart::Never => {
            "after a failure the task runs again at its next time or event".to_owned()
        }
        Restart::OnFailure {
            max,
            within,
            backoff,
        } => format!(
            "after a failure the task runs again after {}; after more than {max} failures within {} it is off until the next start of the pod",
            text(backoff),
            text(within)
        ),
        Restart::Always { backoff } => {
            format!(
                "the task runs again {} after the end of each run; the pause doubles with each failure in a row",
                text(backoff)
            )
        }
    }
}

fn note(part: Part, text: String) -> Step {
    Step {
        part,
        mark: Mark::Note,
        text,
        source: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Report;

    const NOON: u64 = 1_767_268_800_000; // 2026-01-01T12:00:00Z, a Thursday

    fn task(triggers: Vec<TaskTrigger>, restart: Restart) -> BackgroundTaskDeclaration {
        let name = "refresh".to_owned();
        let effect = ToolEffect::Effectful;
        BackgroundTaskDeclaration {
            name,
            effect,
            triggers,
            restart,
            deadline_ms: 60_000,
            needs: Vec::new(),
        }
    }

    fn texts(steps: Vec<Step>) -> Vec<String> {
        steps.into_iter().map(|step| step.text).collect()
    }

    #[test]
    fn each_schedule_has_its_next_three_times() {
        let cron = TaskTrigger::Cron {
            expression: "0 9 * * 1-5".to_owned(),
            time_zone: "Europe/Berlin".to_owned(),
        };
        let every = TaskTrigger::Interval { every_ms: 600_000 };
        let task = task(
            vec![TaskTrigger::Start, cron, every, TaskTrigger::Request],
            Restart::Never,
        );
        let if_new = "if it has not run before, next at";
        assert_eq!(
            texts(schedule(&explained(&task, NOON))),
            [
                "at each start".to_owned(),
                format!(
                    "at 0 9 * * 1-5 Europe/Berlin; {if_new} 2026-01-02T08:00:00Z, 2026-01-05T08:00:00Z, \
                     2026-01-06T08:00:00Z"
                ),
                format!(
                    "every 10 minutes; {if_new} 2026-01-01T12:10:00Z, 2026-01-01T12:20:00Z, 2026-01-01T12:30:00Z"
                ),
                "on request of the feature".to_owned(),
            ]
        );
    }

    #[test]
    fn the_restart_rule_is_in_words() {
        let hour = Duration::from_secs(3600);
        let minute = Duration::from_secs(60);
        let of = |rule| texts(runs(&task(Vec::new(), rule)))[1].clone();
        assert_eq!(
            of(Restart::Never),
            "after a failure the task runs again at its next time or event"
        );
        assert_eq!(
            of(Restart::OnFailure {
                max: 3,
                within: hour,
                backoff: minute
            }),
            "after a failure the task runs again after 1m; after more than 3 failures within 1h it is off until the next \
             start of the pod"
        );
        assert_eq!(
            of(Restart::Always { backoff: minute }),
            "the task runs again 1m after the end of each run; the pause doubles with each failure in a row"
        );
        assert_eq!(
            texts(runs(&task(Vec::new(), Restart::Never)))[0],
            "the task has at most one run at a time; yoi cancels a run after 60 s"
        );
    }

    #[test]
    fn a_task_is_found_by_its_name_or_with_its_feature() {
        use pod::feature::{FeatureId, TaskKey};
        const ONE: TaskKey = TaskKey::new("one", ToolEffect::ReadOnly).at_start();
        const BOTH: TaskKey = TaskKey::new("both", ToolEffect::ReadOnly).at_start();
        let first = FeatureDescriptor::builder(FeatureId::user("a"))
            .background_task(&ONE)
            .background_task(&BOTH)
            .build();
        let all = [
            first,
            FeatureDescriptor::builder(FeatureId::user("b"))
                .background_task(&BOTH)
                .build(),
        ];
        let of = |name| {
            find(name, &all)
                .map(|found| found.map(|(feature, task)| (feature.id.to_string(), &*task.name)))
        };
        assert_eq!(of("one").unwrap(), Some(("user:a".to_owned(), "one")));
        assert_eq!(
            of("user:b/both").unwrap(),
            Some(("user:b".to_owned(), "both"))
        );
        assert_eq!(of("none").unwrap(), None);
        assert!(
            of("both")
                .unwrap_err()
                .text()
                .contains("user:a/both, user:b/both")
        );
        assert_eq!(names(&all), ["one", "user:a/both", "user:b/both"]);
    }
}
