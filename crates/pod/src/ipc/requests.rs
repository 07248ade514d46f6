//! What each request does to the pod. Knows no sockets.

use super::answers::Answer;
use super::convert;
use super::feed::Feed;
use super::hub::Hub;
use super::tail::{Line, LineKind, Older};
use crate::control::{Client, NewClientCall, NewInput, SubmitError};
use crate::record::{RequestedCall, Who};
use llm_worker::ToolOutput;
use protocol::error::{Error, ErrorKind};
use protocol::method::{
    AcceptedInput, Ask, Attach, Attached, CallTool, Cancel, Done, EditInput, GetPastCalls,
    HeldFile, Method, Notify, Page, PreviewCall, RecordPage, Report, SendCall, SendFile, SendInput,
    SetDraft, Shutdown, StopJob, ToolAnswer, Undo, Verb, Wait,
};
use protocol::record::RecordLine;
use protocol::status::DeliveryMode;
use protocol::{MAX_CMD_ID, MAX_PAGE, MAX_PAGE_BYTES};
use serde::Serialize;
use serde_json::value::to_raw_value;
use session_store::Reader;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use tokio::task::spawn_blocking;

/// Carries out a request of this client; one that changes something, once for each `cmd_id`.
pub(super) async fn carry_out(hub: &Arc<Hub>, method: Method, by: Who) -> Answer {
    match method.cmd_id().map(str::to_owned) {
        Some(cmd_id) if cmd_id.is_empty() || cmd_id.len() > MAX_CMD_ID => Err(Error::new(
            ErrorKind::Params,
            format!("a `cmd_id` has 1 to {MAX_CMD_ID} bytes"),
        )),
        // The pod itself knows those of inputs, also after a restart; a piece of a file has its digest.
        Some(cmd_id)
            if !matches!(
                method,
                Method::SendInput(_) | Method::SendCall(_) | Method::SendFile(_)
            ) =>
        {
            hub.answers
                .once(&cmd_id, &method, perform(hub, method.clone(), by))
                .await
        }
        Some(_) | None => perform(hub, method, by).await,
    }
}

async fn perform(hub: &Hub, method: Method, by: Who) -> Answer {
    let client = &hub.client;
    let who = by.clone();
    let by = Some(by);
    let done = match method {
        Method::Hello(_) | Method::Attach(_) => {
            return Err(Error::new(
                ErrorKind::Request,
                format!("`{}` is allowed only once per connection", method.name()),
            ));
        }
        Method::Page(Page { before, limit }) => return answer(&page(hub, before, limit).await?),
        Method::GetStatus(_) => return answer(&hub.measured_status().await?),
        Method::GetFeatures(_) => {
            let report = serde_json::to_value(client.features()).map_err(internal)?;
            return answer(&Report { report });
        }
        Method::GetTools(_) => return answer(&client.offered_tools()),
        Method::GetApprovals(_) => {
            let status = client
                .status()
                .await
                .ok_or(SubmitError::Closed)
                .map_err(refused)?;
            return answer(&convert::approvals(&status));
        }
        Method::GetPastCalls(GetPastCalls { id }) => return past_calls(hub, id).await,
        Method::PreviewCall(PreviewCall { id }) => {
            // It reads files, so it takes its turn, too.
            let _turn = hub.pages.acquire().await.map_err(internal)?;
            return answer(&client.preview_call(id).await.map_err(refused)?);
        }
        Method::Approve(approve) => {
            let recorded = client
                .approve(convert::answer(approve, who))
                .await
                .map_err(refused)?;
            return answer(&recorded);
        }
        Method::Wait(Wait { input, until_asked }) => {
            let end = match until_asked {
                true => client.wait_until_asked(input).await,
                false => client.wait(input).await,
            };
            let end = end.map_err(refused)?;
            return answer(&convert::ended(&end, *client.folded().borrow()).map_err(internal)?);
        }
        Method::SendInput(SendInput {
            text,
            mode,
            expand,
            limits,
            output_schema,
            files,
            cmd_id,
        }) => {
            let files: Result<Vec<_>, _> = {
                let held = hub.files.lock().unwrap_or_else(PoisonError::into_inner);
                files.into_iter().map(|file| held.file(file)).collect()
            };
            let files = files.map_err(|why| Error::new(ErrorKind::Params, why))?;
            let limits = limits.map(convert::limits);
            let output_schema = output_schema.map(|schema| schema.to_string());
            let (mode, run, key) = (convert::mode(mode), mode == DeliveryMode::Run, Some(cmd_id));
            let input = NewInput {
                text,
                run,
                expand,
                mode,
                key,
                limits,
                output_schema,
                by,
                files,
                call: None,
            };
            let accepted = client.send(input).await.map_err(refused)?;
            return answer(&AcceptedInput {
                input: accepted.input,
            });
        }
        Method::SendCall(SendCall {
            tool,
            arguments,
            cmd_id,
        }) => {
            let arguments = serde_json::to_string(&arguments).map_err(internal)?;
            let input = NewInput {
                call: Some(Box::new(RequestedCall { tool, arguments })),
                key: Some(cmd_id),
                by,
                ..NewInput::default()
            };
            let accepted = client.send(input).await.map_err(refused)?;
            return answer(&AcceptedInput {
                input: accepted.input,
            });
        }
        Method::SendFile(SendFile { data, after, .. }) => {
            let mut held = hub.files.lock().unwrap_or_else(PoisonError::into_inner);
            let added = held.add(&data, after.as_deref());
            let digest = added.map_err(|why| Error::new(ErrorKind::Params, why))?;
            return answer(&HeldFile {
                digest: digest.to_string(),
            });
        }
        Method::EditInput(EditInput { input, text, .. }) => client.edit(input, text, by).await,
        Method::Notify(Notify { text, wake, .. }) => client.notify(text, wake, by).await,
        Method::CallTool(call) => return call_tool(client, call, by).await,
        Method::SetDraft(SetDraft { text, .. }) => hub.set_draft(text, by),
        Method::Verb(Verb::Cancel(Cancel {
            input: Some(input), ..
        })) => client.cancel_input(input, by).await,
        Method::Verb(Verb::Cancel(Cancel { input: None, .. })) => {
            client.cancel(by).await;
            Ok(())
        }
        Method::Verb(verb) => client.tell(verb, by).await,
        Method::StopJob(StopJob { job, .. }) => client.stop_job(job, by).await,
        Method::Undo(Undo { to, .. }) => return undo(hub, to).await,
        Method::Shutdown(Shutdown { now, .. }) => {
            let actions = hub.actions.clone();
            spawn_blocking(move || actions.shut_down(now))
                .await
                .map_err(internal)?
                .map_err(internal)?;
            Ok(())
        }
    };
    done_or_unchanged(done)
}

fn done_or_unchanged(done: Result<(), SubmitError>) -> Answer {
    let unchanged = match done {
        Err(SubmitError::Unchanged(why)) => Some(why),
        done => done.map(|()| None).map_err(refused)?,
    };
    answer(&Done { unchanged })
}

async fn call_tool(client: &Client, call: CallTool, by: Option<Who>) -> Answer {
    let CallTool {
        tool,
        arguments,
        cmd_id,
    } = call;
    let arguments = serde_json::to_string(&arguments).map_err(internal)?;
    let call = NewClientCall {
        tool,
        arguments,
        may_change: cmd_id.is_some(),
        by,
    };
    let ToolOutput {
        summary, content, ..
    } = client.call_tool(call).await.map_err(refused)?;
    answer(&ToolAnswer { summary, content })
}

/// It reads as much as many pages, so it takes its turn among those who read them.
async fn past_calls(hub: &Hub, approval: u64) -> Answer {
    let _turn = hub.pages.acquire().await.map_err(internal)?;
    let past = hub
        .client
        .past_calls(approval, &hub.dir)
        .await
        .map_err(refused)?;
    answer(&past)
}

/// No turn begins meanwhile. A client that leaves does not interrupt it.
async fn undo(hub: &Hub, to: u64) -> Answer {
    let turns = hub.client.between_turns().await.map_err(refused)?;
    let actions = hub.actions.clone();
    let undone = spawn_blocking(move || actions.undo(to, turns))
        .await
        .map_err(internal)?;
    answer(&undone)
}

/// Everything that a client needs before the events, and the events: the records after those in the answer come first.
pub(super) async fn attached(hub: &Arc<Hub>, attach: Attach) -> Result<(Attached, Feed), Error> {
    let Attach {
        after,
        without,
        limit,
    } = attach;
    // First: what changes while this is answered is told as an event.
    let events = hub.attach();
    let status = hub.status().await?;
    let newest = status.seq;
    let (page, cursor) = match after {
        Some(after) if after > newest => {
            let text = format!("there is no record {after}; the newest is {newest}");
            return Err(Error::new(ErrorKind::Params, text));
        }
        Some(after) => (None, after),
        None => (
            Some(page(hub, newest + 1, limit.unwrap_or(MAX_PAGE)).await?),
            newest,
        ),
    };
    Ok((
        Attached {
            status,
            draft: hub.draft(),
            page,
        },
        Feed::new(events, without, cursor),
    ))
}

/// The records before one of them. Pages are read one at a time and on another thread: clients that ask for many delay
/// each other only.
async fn page(hub: &Hub, before: u64, limit: u32) -> Result<RecordPage, Error> {
    let turn = hub.pages.clone().acquire_owned().await.map_err(internal)?;
    let dir = hub.dir.clone();
    let folded = *hub.client.folded().borrow();
    let read = move || {
        let page = read_page(&dir, folded, before, limit);
        drop(turn);
        page
    };
    spawn_blocking(read).await.map_err(internal)?
}

fn read_page(dir: &Path, folded: u64, before: u64, limit: u32) -> Result<RecordPage, Error> {
    let before = before.min(folded + 1);
    let reader = Reader::open(dir).map_err(unread)?.upto(folded);
    let frames = reader
        .page(before, limit.clamp(1, MAX_PAGE) as usize, MAX_PAGE_BYTES)
        .map_err(unread)?;
    let mut page = RecordPage {
        records: Vec::new(),
        first: frames.first().map_or(before, |frame| frame.seq),
    };
    for frame in frames {
        let line = Line::of(frame);
        if line.kind != LineKind::Hidden {
            page.records
                .push(RecordLine::new(line.text.to_string()).map_err(internal)?);
        }
    }
    Ok(page)
}

/// The next records for a client, from memory or from the files; `upto` is the newest that it may read.
pub(super) fn records(
    hub: &Hub,
    older: &mut Older,
    next: u64,
    upto: u64,
    bytes: usize,
) -> Result<Vec<Line>, Error> {
    match hub
        .tail(|tail| tail.from(next, bytes))
        .filter(|lines| !lines.is_empty())
    {
        Some(lines) => {
            older.close();
            Ok(lines)
        }
        None => older.read(&hub.dir, next, upto, bytes).map_err(unread),
    }
}

fn answer(result: &impl Serialize) -> Answer {
    to_raw_value(result).map_err(internal)
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn refused(error: SubmitError) -> Error {
    convert::error(&error)
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn unread(error: session_store::ReadError) -> Error {
    Error::new(
        ErrorKind::Internal,
        format!("the journal cannot be read: {error}"),
    )
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn internal(error: impl ToString) -> Error {
    Error::new(ErrorKind::Internal, error.to_string())
}
