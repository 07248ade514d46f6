//! The answers to the newest commands, by the clients' `cmd_id`: a command that is repeated, as after a lost connection,
//! is not carried out twice. In memory; inputs are also known by it after a restart.

use protocol::error::{Error, ErrorKind};
use protocol::method::Method;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// Commands that are remembered, and that may be under way: none of those is forgotten.
pub(super) const MAX_ANSWERS: usize = 256;

/// Bytes of an answer that is remembered.
const MAX_REMEMBERED: usize = 64 * 1024;

/// An answer: the result as JSON, or why there is none.
pub(super) type Answer = Result<Box<RawValue>, Error>;

/// The newest commands, the oldest first.
#[derive(Default)]
pub(super) struct Answers {
    newest: Mutex<VecDeque<Known>>,
}

struct Known {
    cmd_id: String,
    /// Digest of the whole request.
    asked: blake3::Hash,
    answer: watch::Receiver<Option<Answer>>,
}

impl Answers {
    /// Carries out a command, or waits for the answer of the same one.
    pub(super) async fn once(
        &self,
        cmd_id: &str,
        method: &Method,
        carry_out: impl Future<Output = Answer>,
    ) -> Answer {
        let asked = blake3::hash(format!("{method:?}").as_bytes());
        let sender = match self.begin(cmd_id, asked)? {
            Begun::New(sender) => sender,
            Begun::Known(mut answer) => {
                let known = answer
                    .wait_for(Option::is_some)
                    .await
                    .ok()
                    .and_then(|answer| answer.clone());
                let lost = || {
                    Error::new(
                        ErrorKind::Busy,
                        "the first command with this `cmd_id` was not carried out; send it again",
                    )
                };
                return known.unwrap_or_else(|| Err(lost()));
            }
        };
        let answer = carry_out.await;
        let is_kept = answer
            .as_ref()
            .is_ok_and(|answer| answer.get().len() <= MAX_REMEMBERED);
        sender.send_replace(Some(answer.clone()));
        if !is_kept {
            // What failed may be tried again.
            self.newest().retain(|known| known.cmd_id != cmd_id);
        }
        answer
    }

    fn begin(&self, cmd_id: &str, asked: blake3::Hash) -> Result<Begun, Error> {
        let mut newest = self.newest();
        // One that ended without an answer is not known.
        newest
            .retain(|known| known.answer.borrow().is_some() || known.answer.has_changed().is_ok());
        if let Some(known) = newest.iter().find(|known| known.cmd_id == cmd_id) {
            return match known.asked == asked {
                true => Ok(Begun::Known(known.answer.clone())),
                false => Err(Error::new(
                    ErrorKind::Params,
                    "this `cmd_id` was used for another request",
                )),
            };
        }
        if newest.len() >= MAX_ANSWERS {
            newest.pop_front();
        }
        let (sender, answer) = watch::channel(None);
        newest.push_back(Known {
            cmd_id: cmd_id.to_owned(),
            asked,
            answer,
        });
        Ok(Begun::New(sender))
    }

    fn newest(&self) -> std::sync::MutexGuard<'_, VecDeque<Known>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Begun {
    New(watch::Sender<Option<Answer>>),
    Known(watch::Receiver<Option<Answer>>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::method::{Pause, Resume};
    use std::cell::Cell;

    fn done(text: &str) -> Answer {
        Ok(RawValue::from_string(text.to_owned()).unwrap())
    }

    #[tokio::test]
    async fn a_repeated_command_gets_the_answer_of_the_first() {
        let answers = Answers::default();
        let times = Cell::new(0);
        let pause = Method::from(Pause {
            cmd_id: "a".to_owned(),
        });
        let run = async |method: &Method, answer: Answer| {
            let carried = async {
                times.set(times.get() + 1);
                answer
            };
            answers.once("a", method, carried).await
        };
        assert_eq!(
            run(&pause, Err(Error::new(ErrorKind::Disk, "full")))
                .await
                .unwrap_err()
                .kind,
            ErrorKind::Disk
        );
        assert_eq!(run(&pause, done("1")).await.unwrap().get(), "1");
        assert_eq!(run(&pause, done("2")).await.unwrap().get(), "1");
        assert_eq!(times.get(), 2);
        let resume = Method::from(Resume {
            cmd_id: "a".to_owned(),
            more: false,
        });
        assert_eq!(
            run(&resume, done("3")).await.unwrap_err().kind,
            ErrorKind::Params
        );
    }

    #[tokio::test]
    async fn a_command_without_an_answer_is_carried_out_again() {
        let answers = Answers::default();
        let pause = Method::from(Pause {
            cmd_id: "a".to_owned(),
        });
        let left = tokio::time::timeout(
            std::time::Duration::ZERO,
            answers.once("a", &pause, std::future::pending()),
        );
        assert!(left.await.is_err());
        assert_eq!(
            answers
                .once("a", &pause, async { done("1") })
                .await
                .unwrap()
                .get(),
            "1"
        );
    }

    #[tokio::test]
    async fn the_newest_commands_are_known() {
        let answers = Answers::default();
        let number = async |n: usize, answer: &str| {
            let id = n.to_string();
            let pause = Method::from(Pause { cmd_id: id.clone() });
            answers
                .once(&id, &pause, async { done(answer) })
                .await
                .unwrap()
                .get()
                .to_owned()
        };
        for n in 0..=MAX_ANSWERS {
            number(n, "1").await;
        }
        assert_eq!(
            (number(0, "2").await, number(MAX_ANSWERS, "2").await),
            ("2".to_owned(), "1".to_owned())
        );
    }
}
