//! Lines of the protocol, from clients and from pods: what is read is written back to what reads the same.

use protocol::error::Error;
use protocol::event::Event;
use protocol::message::{ClientRequest, Message, answer_line, event_line, request_line};
use protocol::record::RecordView;
use serde_json::value::RawValue;

/// An input is lines, and each is tried as all that a line can be.
pub(crate) fn run(input: &[u8]) {
    for line in input.split(|byte| *byte == b'\n') {
        request(line);
        if let Ok(text) = std::str::from_utf8(line) {
            message(text);
            record(text);
        }
    }
}

fn request(line: &[u8]) {
    match ClientRequest::read(line) {
        Ok(request) => {
            let written = written(&request);
            assert_eq!(
                ClientRequest::read(written.trim_end().as_bytes()).as_ref(),
                Ok(&request),
                "{written}"
            );
        }
        Err(bad) => {
            let written = answer_line::<()>(bad.id, Err(&bad.error)).expect("an answer");
            assert_eq!(written.matches('\n').count(), 1, "{written}");
            let read = Message::read(written.trim_end()).expect("an answer");
            assert!(
                matches!(&read, Message::Answer { id, answer: Err(error) } if *id == bad.id && *error == bad.error),
                "{written}: {read:?}"
            );
        }
    }
}

fn written(request: &ClientRequest) -> String {
    request_line(request.id, &request.method).expect("a request")
}

fn message(text: &str) {
    let (id, answer) = match Message::read(text) {
        Ok(Message::Answer { id, answer }) => (id, answer),
        Ok(Message::Event(event)) => return told(&event),
        Err(_) => return,
    };
    let form = |answer: Result<&RawValue, &Error>| {
        answer.map(|raw| raw.get().to_owned()).map_err(Clone::clone)
    };
    let written = answer_line(id, answer.as_ref()).expect("an answer");
    match Message::read(written.trim_end()).expect("an answer") {
        Message::Answer {
            id: read,
            answer: again,
        } => {
            assert_eq!(read, id, "{written}");
            assert_eq!(form(again.as_deref()), form(answer.as_deref()), "{written}");
        }
        Message::Event(event) => panic!("{written}: {event:?}"),
    }
}

fn told(event: &Event) {
    let written = event_line(event).expect("an event");
    assert_eq!(written.matches('\n').count(), 1, "{written}");
    match Message::read(written.trim_end()) {
        Ok(Message::Event(again)) => assert_eq!(again, *event, "{written}"),
        other => panic!("{written}: {other:?}"),
    }
    if let Event::Record(line) = event {
        record(line.as_str());
        // Without its number it is no record, and neither reader says otherwise.
        assert!(
            line.read()
                .map_or(true, |view| line.seq().is_ok_and(|seq| seq == view.seq)),
            "{written}"
        );
    }
}

fn record(text: &str) {
    let Ok(RecordView { seq, time_us, body }) = RecordView::read(text) else {
        return;
    };
    let mut fields = body.fields();
    let header = serde_json::json!({ "q": seq, "t": time_us, "k": body.kind(), "v": 1 });
    let object = fields.as_object_mut().expect("an object");
    object.extend(header.as_object().expect("an object").clone());
    let again = RecordView::read(&fields.to_string()).expect("a record");
    assert_eq!(
        (again.seq, again.time_us, again.body.fields()),
        (seq, time_us, body.fields()),
        "{text}"
    );
}
