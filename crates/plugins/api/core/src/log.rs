//! Parts of the logs of jobs.

use crate::arguments::JobLogQuery;
use crate::entity::{Job, JobLog, LogLine, RunStatus};
use crate::{ServiceFault, unfit};

/// Most failed jobs of a pipeline whose logs are read, and the last lines of each that are shown.
const MAX_LOGS: usize = 3;
const LAST_LINES: usize = 40;

/// The number in the argument `jobId`.
///
/// # Errors
/// It is none.
pub fn job_number(id: &str) -> Result<u64, ServiceFault> {
    id.parse()
        .map_err(|_| unfit("`jobId` must be the id of a job, as get_pipeline has it"))
}

/// The failed jobs whose logs are wanted.
pub fn of_failed(jobs: &mut [Job], is_wanted: bool) -> impl Iterator<Item = &mut Job> {
    let many = if is_wanted { MAX_LOGS } else { 0 };
    let is_failed = |job: &&mut Job| job.status == RunStatus::Failed;
    jobs.iter_mut().filter(is_failed).take(many)
}

/// The end of a log that was asked for, or why it is not there.
#[must_use]
pub fn told(log: Result<String, ServiceFault>) -> String {
    match log {
        Ok(text) => end(&text, LAST_LINES),
        Err(fault) => format!("[not read: {}]", fault.message),
    }
}

/// The last lines of a log.
fn end(text: &str, many: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(many);
    lines.get(from..).unwrap_or_default().join("\n")
}

/// Those lines of a log that are wanted: with a pattern those that contain it, with the lines around them.
#[must_use]
pub fn cut(text: &str, wanted: &JobLogQuery) -> JobLog {
    let lines: Vec<&str> = text.lines().collect();
    let pattern = wanted.pattern.as_ref().map(|of| of.to_lowercase());
    let context = wanted.context as usize;
    let mut is_shown = vec![pattern.is_none(); lines.len()];
    if let Some(pattern) = pattern {
        for (at, _) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line.to_lowercase().contains(&pattern))
        {
            let around = at.saturating_sub(context)..=at.saturating_add(context);
            around.for_each(|at| {
                if let Some(shown) = is_shown.get_mut(at) {
                    *shown = true;
                }
            });
        }
    }
    let all = lines
        .iter()
        .zip(1..)
        .zip(is_shown)
        .filter(|(_, shown)| *shown);
    let mut from = all.skip(wanted.offset as usize);
    let shown = from.by_ref().take(wanted.limit as usize);
    let lines_shown = shown.map(|((line, number), _)| LogLine {
        number,
        text: (*line).to_owned(),
    });
    JobLog {
        job_id: wanted.job_id.clone(),
        total_lines: lines.len() as u64,
        lines: lines_shown.collect(),
        has_more: from.next().is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_a_pattern_have_their_numbers() {
        let text = "a\nb\nError: c\nd\ne\nf\nerror d";
        let query = |pattern: Option<&str>, context, offset, limit| JobLogQuery {
            job_id: "1".to_owned(),
            pattern: pattern.map(str::to_owned),
            context,
            offset,
            limit,
        };
        let numbers = |wanted: &JobLogQuery| {
            let log = cut(text, wanted);
            assert_eq!(log.total_lines, 7);
            let numbers: Vec<u64> = log.lines.iter().map(|line| line.number).collect();
            (numbers, log.has_more)
        };
        assert_eq!(numbers(&query(None, 0, 1, 2)), (vec![2, 3], true));
        assert_eq!(
            numbers(&query(Some("ERROR"), 1, 0, 9)),
            (vec![2, 3, 4, 6, 7], false)
        );
        assert_eq!(numbers(&query(Some("ERROR"), 0, 1, 9)), (vec![7], false));
        assert_eq!(numbers(&query(Some("x"), 5, 0, 9)), (vec![], false));
        assert_eq!(end(text, 2), "f\nerror d");
        assert_eq!(end("", 2), "");
    }
}
