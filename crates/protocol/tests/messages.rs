//! Lines as they go over the socket, in both directions, and lines of earlier and later programs.

#![allow(clippy::unwrap_used, reason = "tests")]

use protocol::error::{Error, ErrorKind};
use protocol::event::{AlertEvent, AlertLevel, DeltaEvent, DeltaPart, Event};
use protocol::message::{
    BadRequest, ClientRequest, Message, answer_line, event_line, record_line, request_line,
};
use protocol::method::{AcceptedInput, Ask, Attach, GetStatus, Method, Pause, Role, SendInput};
use protocol::status::DeliveryMode;

fn read(line: &str) -> Result<ClientRequest, BadRequest> {
    ClientRequest::read(line.trim_end_matches('\n').as_bytes())
}

#[test]
fn a_request_is_one_line() {
    let input = SendInput {
        text: "go\n\"on\"".to_owned(),
        cmd_id: "a-1".to_owned(),
        ..SendInput::default()
    };
    let line = request_line(7, &input).unwrap();
    assert_eq!(
        line,
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"input\",\"params\":{\"text\":\"go\\n\\\"on\\\"\",\"mode\":\"queue\",\"cmd_id\":\"a-1\"}}\n"
    );
    assert_eq!(
        read(&line).unwrap(),
        ClientRequest {
            id: 7,
            method: Method::SendInput(input)
        }
    );
    let bare = read(r#"{"jsonrpc":"2.0","id":1,"method":"status"}"#).unwrap();
    assert_eq!(bare.method, Method::GetStatus(GetStatus {}));
    let later = r#"{"jsonrpc":"2.0","id":2,"trace":"x","method":"input","params":{"text":"t","cmd_id":"c","colour":"red","mode":"steer"}}"#;
    let Method::SendInput(input) = read(later).unwrap().method else {
        panic!()
    };
    assert_eq!((input.mode, input.limits), (DeliveryMode::Steer, None));
}

#[test]
fn what_is_no_request_is_answered_by_its_number_and_what_is_wrong() {
    let bad = |line: &str| {
        let BadRequest { id, error } = read(line).unwrap_err();
        (id, error.kind, error.message)
    };
    for (line, id, kind, says) in [
        ("{", None, ErrorKind::Parse, "EOF"),
        ("[{}]", None, ErrorKind::Request, "lists are not supported"),
        (
            r#"{"id":3,"method":"status"}"#,
            Some(3),
            ErrorKind::Request,
            "jsonrpc",
        ),
        (
            r#"{"jsonrpc":"2.0","id":3}"#,
            Some(3),
            ErrorKind::Request,
            "`method` is missing",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"status"}"#,
            None,
            ErrorKind::Request,
            "`id` must be a whole number",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"status"}"#,
            None,
            ErrorKind::Request,
            "not a request",
        ),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"dance"}"#,
            Some(4),
            ErrorKind::Method,
            "there is no method `dance`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"input"}"#,
            Some(5),
            ErrorKind::Params,
            "missing field `text`",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"input","params":{"text":"t"}}"#,
            Some(5),
            ErrorKind::Params,
            "cmd_id",
        ),
        (
            r#"{"jsonrpc":"2.0","id":6,"method":"pause","params":["x"]}"#,
            Some(6),
            ErrorKind::Params,
            "an object",
        ),
    ] {
        let (got, was, text) = bad(line);
        assert_eq!((got, was), (id, kind), "{line}: {text}");
        assert!(text.contains(says), "{line}: {text}");
    }
    let BadRequest { id, error } = ClientRequest::read(b"{\"id\":1,\"x\":\"\xff\"}").unwrap_err();
    assert_eq!((id, error.kind), (None, ErrorKind::Parse));
}

#[test]
fn answers_and_events_are_read_back() {
    let line = answer_line(Some(7), Ok(&AcceptedInput { input: 3 })).unwrap();
    assert_eq!(
        line,
        "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"input\":3}}\n"
    );
    let Message::Answer {
        id: Some(7),
        answer: Ok(result),
    } = Message::read(&line).unwrap()
    else {
        panic!()
    };
    assert_eq!(
        serde_json::from_str::<AcceptedInput>(result.get()).unwrap(),
        AcceptedInput { input: 3 }
    );
    let error = Error::new(ErrorKind::Closing, "the pod is stopping");
    let line = answer_line::<()>(None, Err(&error)).unwrap();
    let Message::Answer {
        id: None,
        answer: Err(read),
    } = Message::read(&line).unwrap()
    else {
        panic!()
    };
    assert_eq!(read, error);
    let alert = Event::Alert(AlertEvent {
        level: AlertLevel::Warning,
        from: None,
        text: "low".to_owned(),
    });
    let Message::Event(read) = Message::read(&event_line(&alert).unwrap()).unwrap() else {
        panic!()
    };
    assert_eq!(read, alert);
    let later = r#"{"jsonrpc":"2.0","method":"weather","params":{"rain":true}}"#;
    let Message::Event(event @ Event::Other { .. }) = Message::read(later).unwrap() else {
        panic!()
    };
    assert_eq!(event_line(&event).unwrap().trim_end(), later);
    for nothing in ["{}", "{\"id\":1}", "[]", "\"x\"", ""] {
        assert!(Message::read(nothing).is_err(), "{nothing}");
    }
}

#[test]
fn a_record_travels_as_the_journal_has_it() {
    let journal = r#"{"c":"56a70269","n":"00000099","p":"9aa24073","e":     1,"q":           2,"d":           0,"b":    0,"t":1790000000000001,"k":"note","v":1,"text":"one"}"#;
    let Message::Event(Event::Record(line)) =
        Message::read(record_line(&format!("{journal}\n")).trim_end()).unwrap()
    else {
        panic!()
    };
    assert_eq!(line.as_str(), journal);
    let record = line.read().unwrap();
    assert_eq!(
        (record.seq, record.time_us, record.body.kind()),
        (2, 1_790_000_000_000_001, "note")
    );
    assert_eq!(record.body.fields(), serde_json::json!({ "text": "one" }));
}

#[test]
fn deltas_of_one_kind_are_merged() {
    let text = |text: &str| DeltaPart::Text {
        text: text.to_owned(),
    };
    let mut part = text("a");
    assert_eq!(part.append(text("b")), Ok(()));
    assert_eq!(part, text("ab"));
    let call = DeltaPart::CallStarted {
        index: 0,
        name: "Read".to_owned(),
    };
    assert_eq!(part.append(call.clone()), Err(call));
    let output = r#"{"jsonrpc":"2.0","method":"delta","params":{"turn":1,"request":2,"type":"output","call":"c1","text":"x"}}"#;
    let Message::Event(Event::Delta(delta)) = Message::read(output).unwrap() else {
        panic!()
    };
    let part = DeltaPart::Output {
        call: "c1".to_owned(),
        text: "x".to_owned(),
        anew: false,
    };
    assert_eq!(
        (
            serde_json::to_value(&delta).unwrap().get("anew"),
            delta.part
        ),
        (None, part)
    );
    let later = r#"{"jsonrpc":"2.0","method":"delta","params":{"turn":1,"request":2,"type":"picture","bytes":7}}"#;
    let Message::Event(Event::Delta(delta)) = Message::read(later).unwrap() else {
        panic!()
    };
    assert_eq!(
        delta,
        DeltaEvent {
            turn: 1,
            request: 2,
            part: DeltaPart::Unknown
        }
    );
}

#[test]
fn what_changes_something_has_a_cmd_id_and_nothing_else_does() {
    let pause = Method::from(Pause {
        cmd_id: "p".to_owned(),
    });
    assert_eq!((pause.cmd_id(), pause.name()), (Some("p"), "pause"));
    assert_eq!(Method::Attach(Attach::default()).cmd_id(), None);
}

#[test]
fn an_input_that_denies_calls_needs_the_role_that_answers_them() {
    let role = |mode: &str| {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"input","params":{{"text":"x","mode":"{mode}","cmd_id":"c"}}}}"#
        );
        read(&line).unwrap().method.role()
    };
    assert_eq!(
        (role("queue"), role("steer"), role("deny_parked")),
        (Role::Driver, Role::Driver, Role::Approver)
    );
    let forget =
        r#"{"jsonrpc":"2.0","id":1,"method":"forget_rules","params":{"rules":[1],"cmd_id":"c"}}"#;
    assert_eq!(read(forget).unwrap().method.role(), Role::Approver);
}
