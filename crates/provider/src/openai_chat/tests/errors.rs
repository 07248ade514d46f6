//! What a person is told when an endpoint refuses.

use super::loopback::Rig;
use crate::failure::{Failure, KeyStatus, RequestContext};
use crate::test_server::{Reply, Server, TERMS, status};
use crate::vendor_error::{VendorError, one_line};
use llm_worker::ErrorKind;

#[tokio::test]
async fn refusals_are_told_apart_and_say_what_to_do() {
    let table = [
        (
            "400 Bad Request",
            "",
            r#"{"error":{"message":"bad tool","type":"invalid_request_error"}}"#,
            ErrorKind::FixInput,
            "bad tool",
            "supports tools",
        ),
        (
            "401 Unauthorized",
            "",
            r#"{"error":{"message":"Incorrect key sk-very-secret-123 given"}}"#,
            ErrorKind::Denied,
            "‹key›",
            "TEST_API_KEY",
        ),
        ("403 Forbidden", "", "nope", ErrorKind::Denied, "nope", "TEST_API_KEY"),
        (
            "404 Not Found",
            "",
            r#"{"error":{"message":"model \"some-model\" not found"}}"#,
            ErrorKind::FixInput,
            "not found",
            "some-model",
        ),
        (
            "402 Payment Required",
            "",
            r#"{"error":{"message":"Insufficient credits","code":402}}"#,
            ErrorKind::Exhausted,
            "credits",
            "credit",
        ),
        (
            "429 Too Many Requests",
            "retry-after: 1\r\n",
            r#"{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            ErrorKind::Exhausted,
            "quota",
            "credit",
        ),
        (
            "400 Bad Request",
            "",
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#,
            ErrorKind::Exhausted,
            "8192",
            "larger context",
        ),
        (
            "400 Bad Request",
            "",
            r#"{"error":{"code":400,"message":"request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            ErrorKind::Exhausted,
            "context size",
            "larger context",
        ),
        ("413 Payload Too Large", "", "", ErrorKind::Exhausted, "413", "larger context"),
        (
            "422 Unprocessable Entity",
            "",
            r#"{"detail":[{"msg":"field required"}]}"#,
            ErrorKind::FixInput,
            "field required",
            "supports tools",
        ),
        ("501 Not Implemented", "", "", ErrorKind::Unavailable, "501", "another model"),
        (
            "302 Found",
            "location: https://elsewhere.example/v1\r\n",
            "",
            ErrorKind::FixInput,
            "elsewhere.example",
            "check the `base_url`",
        ),
        ("200 OK", "content-type: text/html\r\n", "<html>hi</html>", ErrorKind::FixInput, "HTML", "/v1"),
        ("429 Too Many Requests", "retry-after: 600\r\n", "", ErrorKind::Unavailable, "600 s", "10 min"),
        (
            "429 Too Many Requests",
            "",
            r#"[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},{"retryDelay":"240.5s"}]}}]"#,
            ErrorKind::Unavailable,
            "slow",
            "try again in 5 min, or choose another model with -m",
        ),
    ];
    for (line, headers, body, kind, message, help) in table {
        let server = Server::start([Reply::Keep(status(line, headers, body))]).await;
        let (result, events) = Rig::at(server.port).ask().await;
        let error = result.unwrap_err();
        assert_eq!((error.kind, events.len()), (kind, 0), "{line} {body}: {error:?}");
        assert!(error.message.contains(message) && error.message.contains("127.0.0.1"), "{line}: {}", error.message);
        assert!(error.help.as_ref().is_some_and(|text| text.contains(help)), "{line}: {:?}", error.help);
        assert!(!format!("{error:?}").contains("secret-123"), "{error:?}");
        assert_eq!(server.seen().len(), 1, "{line} is not retried");
    }
}

#[test]
fn help_names_the_ways_out_in_the_hosts_words() {
    let table = [
        (402, "add credit or raise the spending limit at the provider, or choose another model with -m"),
        (404, "check that the provider offers `m` (`yoi models` lists its models), and check its `base_url`"),
        (429, "the provider's rate limit was reached: wait, or choose another model with -m"),
        (500, "try again later, or choose another model with -m"),
    ];
    for (status, help) in table {
        let failure = Failure::refused(Some(status), None, &VendorError::saying("no"), "no".to_owned());
        let place = RequestContext { url: "http://x", model: "m", key: KeyStatus::None, terms: TERMS };
        assert_eq!(failure.into_error(1, &place).help.as_deref(), Some(help), "{status}");
    }
}

#[tokio::test]
async fn retries_used_up_end_with_the_last_reason() {
    let busy = || Reply::Keep(status("503 Service Unavailable", "", "warming up"));
    let server = Server::start((0..9).map(|_| busy())).await;
    let (result, events) = Rig::at(server.port).ask().await;
    let error = result.unwrap_err();
    assert_eq!((error.kind, events.len(), server.seen().len()), (ErrorKind::Unavailable, 4, 5));
    assert!(error.message.contains("warming up") && error.message.contains("5 attempts"), "{}", error.message);
    assert_eq!(server.connections(), [1, 1, 1, 1, 1], "a refused request leaves the connection usable");
}

#[test]
fn vendor_words_come_in_many_wrappings() {
    let table = [
        (r#"{"error":{"message":"a"}}"#, "a"),
        (r#"{"error":"b"}"#, "b"),
        (r#"[{"error":{"message":"c"}}]"#, "c"),
        (r#"{"message":"d"}"#, "d"),
        (r#"{"detail":"e"}"#, "e"),
        (r#"{"error":{"message":"Provider returned error","metadata":{"raw":"f"}}}"#, "Provider returned error: f"),
        ("plain\r\n\u{1b}[31mwords", "plain \\u{1b}[31mwords"),
        ("<!doctype html>", "an HTML page, not an API answer"),
        ("", ""),
    ];
    for (body, want) in table {
        assert_eq!(one_line(&VendorError::read_bytes(body.as_bytes()).message), want, "{body}");
    }
    let long = one_line(&"é".repeat(5000));
    assert_eq!(long.chars().count(), 601);
}

/// Wherever an endpoint repeats the key: across the cut of a long message, in a redirect, in what is no JSON, in the names
/// of a stream. And no word of it is longer than a line.
#[tokio::test]
async fn the_key_is_in_no_message_and_no_message_is_endless() {
    const KEY: &str = "sk-very-secret-123";
    let stream = |data: String| crate::test_server::streamed(&format!("data: {data}\n\n"), 1 << 20);
    let mut replies = vec![
        status("302 Found", &format!("location: https://x.example/{KEY}\r\n"), ""),
        stream(format!(r#"{{"choices":"{KEY}"}}"#)),
        stream(format!(r#"{{"choices":"{}"}}"#, "y".repeat(2 << 20))),
    ];
    // Somewhere here the key is across the cut.
    for padding in (510..600).step_by(6) {
        let across = format!("{}{KEY}", "x".repeat(padding));
        replies.push(status("400 Bad Request", "", &format!(r#"{{"error":{{"message":"{across}"}}}}"#)));
        replies.push(stream(format!(r#"{{"error":{{"message":"{across}","code":400}}}}"#)));
    }
    for reply in replies {
        let server = Server::start((0..5).map(|_| Reply::Close(reply.clone()))).await;
        let (result, events) = Rig::at(server.port).ask().await;
        let said = format!("{:?}{events:?}", result.unwrap_err());
        assert!(!said.contains("sk-very") && !said.contains("secret-123"), "{said}");
        assert!(said.len() < 6000, "{} bytes", said.len());
    }
    let other = format!(r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":"{}"}}]}}"#, "z".repeat(2 << 20));
    let server = Server::start([Reply::Close(stream(other))]).await;
    let (result, events) = Rig::at(server.port).ask().await;
    assert_eq!(result, Ok(()));
    let stop = events.last().unwrap();
    assert!(format!("{stop:?}").len() < 2000, "a stop reason becomes a record");
}
