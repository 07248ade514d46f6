//! Clients that come, go, stop reading and reconnect as chance has it hold what the journal holds, and their models
//! agree with the pod. Clients that leave stop nothing.

use crate::rig::{Raw, Scene};
use client::attachment::Attachment;
use client::connection::hello;
use client::model::{PodModel, digest};
use llm_worker::StopReason;
use protocol::event::{Event, EventKind};
use protocol::method::{Attach, Attached, Hello, Role};
use protocol::record::RecordLine;
use protocol::status::Status;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use testkit::{Latch, ScriptedAnswer};
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Longer than any wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Random events; `.ci/long` sets more.
fn events() -> usize {
    std::env::var("YOI_TEST_EVENTS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000)
}

fn seed() -> u64 {
    std::env::var("YOI_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0x5eed)
}

/// xorshift64*
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

fn seq(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).unwrap()["q"]
        .as_u64()
        .unwrap()
}

/// The model of a client that has seen every record and no status.
fn folded(journal: &[String]) -> PodModel {
    let mut model = PodModel::before_any_record("p");
    for line in journal {
        model.apply(&Event::Record(RecordLine::new(line.clone()).unwrap()));
    }
    model
}

/// A client with everything that it was told, over all its connections.
struct Follower {
    dir: PathBuf,
    without: Vec<EventKind>,
    attachment: Option<Attachment>,
    /// The newest record that it had when it detached.
    cursor: u64,
    model: PodModel,
    transcript: Vec<String>,
    lagged: u64,
}

impl Follower {
    async fn new(dir: PathBuf, attach: Attach) -> Self {
        let (attachment, attached) =
            Attachment::begin(&dir, hello("follower", Role::Viewer), attach.clone())
                .await
                .unwrap();
        let page = attached.page.iter().flat_map(|page| &page.records);
        let transcript = page.map(|line| line.as_str().to_owned()).collect();
        let mut model = match attach.after {
            Some(_) => PodModel::before_any_record("p"),
            None => PodModel::new(&attached),
        };
        if attach.after.is_some() {
            model.resume(&attached);
        }
        let cursor = attachment.cursor();
        let without = attach.without;
        Self {
            dir,
            without,
            attachment: Some(attachment),
            cursor,
            model,
            transcript,
            lagged: 0,
        }
    }

    fn take(&mut self, event: &Event) {
        self.model.apply(event);
        match event {
            Event::Record(line) => self.transcript.push(line.as_str().to_owned()),
            Event::Lagged(lagged) => self.lagged += lagged.deltas,
            _ => {}
        }
    }

    /// Reads what is there, at most so many events.
    async fn read(&mut self, most: u64) {
        for _ in 0..most {
            let Some(attachment) = &mut self.attachment else {
                return;
            };
            let Ok(event) = timeout(Duration::from_millis(1), attachment.next()).await else {
                return;
            };
            let event = event.unwrap();
            self.take(&event);
        }
    }

    fn detach(&mut self) {
        if let Some(attachment) = self.attachment.take() {
            self.cursor = attachment.cursor();
        }
    }

    /// Attaches as a new process of the same program would, behind what it has.
    async fn attach(&mut self, hello: Hello) {
        if self.attachment.is_none() {
            let attach = Attach {
                after: Some(self.cursor),
                without: self.without.clone(),
                limit: None,
            };
            let (attachment, attached) = Attachment::begin(&self.dir, hello, attach).await.unwrap();
            self.go_on(&attached);
            self.attachment = Some(attachment);
        }
    }

    async fn reconnect(&mut self) {
        if let Some(attachment) = &mut self.attachment {
            let attached = attachment.resume(PATIENCE).await.unwrap();
            self.go_on(&attached);
        }
    }

    fn go_on(&mut self, attached: &Attached) {
        self.model.resume(attached);
    }

    /// Reads up to this record.
    async fn catch_up(&mut self, newest: u64) {
        self.attach(hello("follower", Role::Viewer)).await;
        while self.transcript.last().is_none_or(|line| seq(line) < newest) {
            let next = self.attachment.as_mut().unwrap().next();
            let event = timeout(PATIENCE, next).await.unwrap().unwrap();
            self.take(&event);
        }
    }

    /// Reads on until the model is as the pod is: what no record tells comes a little later.
    async fn agree(&mut self, status: &Status) {
        let agreed = async {
            while digest(self.model.status()) != digest(status) {
                let event = self.attachment.as_mut().unwrap().next().await.unwrap();
                self.take(&event);
            }
        };
        assert!(
            timeout(PATIENCE, agreed).await.is_ok(),
            "{:#?}\n{status:#?}",
            self.model.status()
        );
    }
}

/// A pod whose answers wait until they are let go, a client that drives it, and two that follow.
struct World {
    scene: Scene,
    driver: Raw,
    latches: Vec<Latch>,
    /// Answers that may go on.
    open: usize,
    given: usize,
    followers: Vec<Follower>,
    runtime: Runtime,
}

impl World {
    fn new(answers: usize) -> Self {
        let latches: Vec<Latch> = (0..answers)
            .map(|n| Latch::new(&format!("answer {n}")))
            .collect();
        let answer = |(n, latch): (usize, &Latch)| {
            let long = "word ".repeat(if n % 7 == 0 { 30_000 } else { 10 });
            let answer = ScriptedAnswer::new()
                .say("first ")
                .wait_at(latch)
                .say(&long);
            match n % 5 {
                0 => answer.call(0, "Echo", "{}").stop(StopReason::ToolUse),
                _ => answer.stop(StopReason::EndTurn),
            }
        };
        let scene = Scene::new(latches.iter().enumerate().map(answer).collect());
        let driver = scene.driver();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let dir = scene.live.pod.dir.clone();
        // One that knows the pod from records alone, and one that began at a page.
        let from_records = Attach {
            after: Some(0),
            without: vec![EventKind::Status],
            limit: None,
        };
        let from_page = Attach {
            limit: Some(3),
            ..Attach::default()
        };
        let followers = [from_records, from_page]
            .map(|attach| runtime.block_on(Follower::new(dir.clone(), attach)));
        Self {
            scene,
            driver,
            latches,
            open: 0,
            given: 0,
            followers: Vec::from(followers),
            runtime,
        }
    }

    fn release(&mut self) {
        if let Some(latch) = self.latches.get(self.open) {
            latch.open();
            self.open += 1;
        }
    }

    fn command(&mut self, method: &str, chance: &mut Chance) {
        self.given += 1;
        let mut params = json!({ "cmd_id": self.given.to_string() });
        if method == "input" {
            let size = if chance.below(6) == 0 { 150_000 } else { 10 };
            params["text"] = json!(format!("input {} {}", self.given, "x".repeat(size)));
            params["mode"] = json!(if chance.below(4) == 0 {
                "steer"
            } else {
                "queue"
            });
        }
        match self.driver.ask(method, params) {
            Ok(_) => {}
            Err(error) => assert_eq!(error["data"]["kind"], "busy", "{error}"),
        }
    }

    /// One random event.
    fn step(&mut self, chance: &mut Chance) {
        let who = chance.below(self.followers.len() as u64) as usize;
        let follower = &mut self.followers[who];
        let runtime = &self.runtime;
        match chance.below(20) {
            0..=4 => runtime.block_on(follower.read(1 + chance.below(40))),
            5 | 6 => follower.detach(),
            7..=9 => runtime.block_on(follower.attach(hello("follower", Role::Viewer))),
            10 | 11 => runtime.block_on(follower.reconnect()),
            12 => {
                let later = Hello {
                    versions: vec![9, 1],
                    ..hello("follower of a later version", Role::Viewer)
                };
                runtime.block_on(follower.attach(later));
                let mut stranger = self.scene.stranger();
                let refused = stranger.ask("hello", json!({ "versions": [2], "client": "later" }));
                assert_eq!(Raw::kind(refused), "version");
            }
            13..=15 => self.command("input", chance),
            16 | 17 => self.release(),
            18 => {
                let methods = ["pause", "resume", "cancel"];
                self.command(methods[chance.below(3) as usize], chance);
            }
            _ => self.quiet(),
        }
    }

    /// Lets the pod finish what it has, and compares what all hold.
    fn quiet(&mut self) {
        let is_quiet = |status: &Status| {
            status.turn.is_none() && (status.queued.is_empty() || status.held.is_some())
        };
        let mut status = self.status();
        while !is_quiet(&status) {
            if status.held.is_some() {
                self.given += 1;
                self.driver
                    .ask("resume", json!({ "cmd_id": self.given.to_string() }))
                    .unwrap();
            }
            // Every answer that has begun may end.
            while self.open < usize::try_from(status.requests).unwrap() {
                self.release();
            }
            std::thread::sleep(Duration::from_millis(2));
            status = self.status();
        }
        self.scene.settled();
        let journal = self.scene.journal();
        let status = self.status();
        let newest = seq(journal.last().unwrap());
        let folded = folded(&journal);
        assert_eq!(
            digest(folded.status()),
            digest(&status),
            "{:#?}\n{status:#?}",
            folded.status()
        );
        for follower in &mut self.followers {
            self.runtime.block_on(follower.catch_up(newest));
            let first = seq(&follower.transcript[0]);
            let suffix: Vec<&String> = journal.iter().filter(|line| seq(line) >= first).collect();
            assert!(
                follower.transcript.iter().eq(suffix),
                "a transcript from record {first} on"
            );
            self.runtime.block_on(follower.agree(&status));
        }
    }

    fn status(&mut self) -> Status {
        serde_json::from_value(self.driver.ask("status", json!({})).unwrap()).unwrap()
    }
}

#[test]
fn two_clients_hold_the_journal_whatever_happens_to_them() {
    let mut chance = Chance(seed());
    let mut world = World::new(events());
    for _ in 0..events() {
        world.step(&mut chance);
    }
    world.quiet();
    let turns = world.status().turns;
    assert!(turns > events() as u64 / 20, "{turns} turns");
    let [one, two] = world.followers.as_slice() else {
        panic!()
    };
    println!(
        "{turns} turns, {} records, deltas dropped: {} and {}",
        one.transcript.len(),
        one.lagged,
        two.lagged
    );
    let behind = one.transcript.len() - two.transcript.len();
    assert_eq!(one.transcript[behind..], two.transcript);
    world.scene.close();
}

#[test]
fn the_work_goes_on_when_every_client_leaves_in_mid_turn() {
    let latch = Latch::new("all have left");
    let first = ScriptedAnswer::new()
        .say("looking ")
        .wait_at(&latch)
        .call(0, "Echo", "{}")
        .stop(StopReason::ToolUse);
    let scene = Scene::new(vec![first, ScriptedAnswer::text("done")]);
    let mut clients: Vec<Raw> = (0..3).map(|_| scene.driver()).collect();
    for client in &mut clients {
        client.ask("attach", json!({ "after": 0 })).unwrap();
    }
    clients[0]
        .ask("input", json!({ "text": "go", "cmd_id": "1" }))
        .unwrap();
    // One waits for the end of the turn, one has half a request on its way.
    clients[1].send("wait", json!({ "input": 1 })).unwrap();
    clients
        .iter_mut()
        .for_each(|client| drop(client.next("delta")));
    clients[2].write(b"{\"jsonrpc\":\"2.0\",").unwrap();
    drop(clients);
    // The pod has seen them leave once it answers one that came later.
    assert_eq!(
        scene.driver().ask("status", json!({})).unwrap()["state"],
        "working"
    );
    latch.open();
    let end = scene.driver().ask("wait", json!({ "input": 1 })).unwrap();
    assert_eq!(
        (&end["outcome"]["outcome"], &end["answer"], &end["steps"]),
        (&json!("done"), &json!("done"), &json!(2))
    );
    scene.close();
}
