//! A key names one input, however often it is sent; a text names none.

use crate::fixtures::{live, pod, sound};
use pod::control::{HostMode, NewInput, SubmitError};
use testkit::{LivePod, ScriptedAnswer};

fn new(text: &str, key: Option<&str>) -> NewInput {
    NewInput {
        text: text.to_owned(),
        key: key.map(str::to_owned),
        ..NewInput::default()
    }
}

fn send(live: &LivePod, text: &str, key: Option<&str>) -> pod::control::Accepted {
    live.ask(live.client().send(new(text, key))).unwrap()
}

#[test]
fn a_key_names_one_input_also_after_a_restart() {
    let mut pod = pod(
        (0..3)
            .map(|n| ScriptedAnswer::text(&format!("answer {n}")))
            .collect(),
        Vec::new(),
    );
    pod.mode = HostMode::Stay { missing: None };
    let live = live(pod);
    let first = send(&live, "go on", Some("a"));
    assert_eq!(
        (
            first.input,
            send(&live, "go on", Some("b")).input,
            send(&live, "go on", None).input
        ),
        (1, 2, 3)
    );
    assert_eq!(
        live.ask(first.end()).unwrap().answer.as_deref(),
        Some("answer 0")
    );
    live.settled();
    // The same, whatever it says now.
    let again = send(&live, "something else", Some("a"));
    assert_eq!(again.input, 1);
    assert_eq!(
        live.ask(again.end()).unwrap().answer.as_deref(),
        Some("answer 0")
    );
    let live = crate::fixtures::live(live.close().pod);
    let second = send(&live, "go on", Some("b"));
    assert_eq!((second.input, live.settled().turns), (2, 3));
    let over = live.ask(second.end());
    assert!(matches!(over, Err(SubmitError::Over(2))), "{over:?}");
    let over = live.close();
    assert_eq!(over.state().inputs, 3);
    sound(&over.pod, "keys");
}

/// Two clients that send the same at once both learn of its end.
#[test]
fn everyone_who_sent_an_input_learns_of_its_end() {
    let mut pod = pod(vec![ScriptedAnswer::text("done")], Vec::new());
    pod.mode = HostMode::Stay { missing: None };
    let live = live(pod);
    let client = live.client();
    live.ask(client.pause(None)).unwrap();
    let both = async {
        tokio::join!(
            client.send(new("go", Some("a"))),
            client.send(new("go", Some("a")))
        )
    };
    let (one, two) = live.ask(both);
    let one = one.unwrap();
    let two = two.unwrap();
    assert_eq!((one.input, two.input), (1, 1));
    live.ask(client.resume(None)).unwrap();
    drop(client);
    for accepted in [one, two] {
        assert_eq!(
            live.ask(accepted.end()).unwrap().answer.as_deref(),
            Some("done")
        );
    }
    sound(&live.close().pod, "one input, two clients");
}
