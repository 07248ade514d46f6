//! What a person is told when an endpoint refuses.

use super::loopback::Rig;
use crate::failure::{Failure, KeyStatus, RequestContext, RetryAdvice};
use crate::test_server::{Reply, Server, TERMS, begun, status, streamed};
use crate::vendor_error::{VendorError, one_line};
use llm_worker::{ErrorKind, ModelEvent, StopReason};
use std::time::Duration;

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
        (
            "403 Forbidden",
            "",
            "nope",
            ErrorKind::Denied,
            "nope",
            "TEST_API_KEY",
        ),
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
        (
            "413 Payload Too Large",
            "",
            "",
            ErrorKind::Exhausted,
            "413",
            "larger context",
        ),
        (
            "422 Unprocessable Entity",
            "",
            r#"{"detail":[{"msg":"field required"}]}"#,
            ErrorKind::FixInput,
            "field required",
            "supports tools",
        ),
        (
            "501 Not Implemented",
            "",
            "",
            ErrorKind::Unavailable,
            "501",
            "another model",
        ),
        (
            "302 Found",
            "location: https://elsewhere.example/v1\r\n",
            "",
            ErrorKind::FixInput,
            "elsewhere.example",
            "check the `base_url`",
        ),
        (
            "200 OK",
            "content-type: text/html\r\n",
            "<html>hi</html>",
            ErrorKind::FixInput,
            "HTML",
            "/v1",
        ),
        (
            "429 Too Many Requests",
            "retry-after: 600\r\n",
            "",
            ErrorKind::Unavailable,
            "600 s",
            "10 min",
        ),
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
        assert_eq!(
            (error.kind, events.len()),
            (kind, 0),
            "{line} {body}: {error:?}"
        );
        assert!(
            error.message.contains(message) && error.message.contains("127.0.0.1"),
            "{line}: {}",
            error.message
        );
        assert!(
            error.help.as_ref().is_some_and(|text| text.contains(help)),
            "{line}: {:?}",
            error.help
        );
        assert!(!format!("{error:?}").contains("secret-123"), "{error:?}");
        assert_eq!(server.seen().len(), 1, "{line} is not retried");
    }
}

#[test]
fn help_names_the_ways_out_in_the_hosts_words() {
    let table = [
        (
            402,
            "add credit or raise the spending limit at the provider, or choose another model with -m",
        ),
        (
            404,
            "check that the provider offers `m` (`yoi models` lists its models), and check its `base_url`",
        ),
        (
            429,
            "the provider's rate limit was reached: wait, or choose another model with -m",
        ),
        (500, "try again later, or choose another model with -m"),
    ];
    for (status, help) in table {
        let failure = Failure::refused(
            Some(status),
            RetryAdvice::default(),
            &VendorError::saying("no"),
            "no".to_owned(),
        );
        let terms = TERMS;
        let place = RequestContext {
            url: "http://x",
            model: "m",
            key: KeyStatus::None,
            terms: &terms,
        };
        assert_eq!(
            failure.into_error(1, &place).help.as_deref(),
            Some(help),
            "{status}"
        );
    }
}

#[tokio::test]
async fn retries_used_up_end_with_the_last_reason() {
    let busy = || Reply::Keep(status("503 Service Unavailable", "", "warming up"));
    let server = Server::start((0..9).map(|_| busy())).await;
    let (result, events) = Rig::at(server.port).ask().await;
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind, events.len(), server.seen().len()),
        (ErrorKind::Unavailable, 4, 5)
    );
    assert!(
        error.message.contains("warming up") && error.message.contains("5 attempts"),
        "{}",
        error.message
    );
    assert_eq!(
        server.connections(),
        [1, 1, 1, 1, 1],
        "a refused request leaves the connection usable"
    );
}

#[test]
fn vendor_words_come_in_many_wrappings() {
    let table = [
        (r#"{"error":{"message":"a"}}"#, "a"),
        (r#"{"error":"b"}"#, "b"),
        (r#"[{"error":{"message":"c"}}]"#, "c"),
        (r#"{"message":"d"}"#, "d"),
        (r#"{"detail":"e"}"#, "e"),
        (
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"f"}}}"#,
            "Provider returned error: f",
        ),
        ("plain\r\n\u{1b}[31mwords", "plain \\u{1b}[31mwords"),
        ("<!doctype html>", "an HTML page, not an API answer"),
        ("", ""),
    ];
    for (body, want) in table {
        assert_eq!(
            one_line(&VendorError::read_bytes(body.as_bytes()).message),
            want,
            "{body}"
        );
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
        status(
            "302 Found",
            &format!("location: https://x.example/{KEY}\r\n"),
            "",
        ),
        stream(format!(r#"{{"choices":"{KEY}"}}"#)),
        stream(format!(r#"{{"choices":"{}"}}"#, "y".repeat(2 << 20))),
    ];
    // Somewhere here the key is across the cut.
    for padding in (510..600).step_by(6) {
        let across = format!("{}{KEY}", "x".repeat(padding));
        replies.push(status(
            "400 Bad Request",
            "",
            &format!(r#"{{"error":{{"message":"{across}"}}}}"#),
        ));
        replies.push(stream(format!(
            r#"{{"error":{{"message":"{across}","code":400}}}}"#
        )));
    }
    for reply in replies {
        let server = Server::start((0..5).map(|_| Reply::Close(reply.clone()))).await;
        let (result, events) = Rig::at(server.port).ask().await;
        let said = format!("{:?}{events:?}", result.unwrap_err());
        assert!(
            !said.contains("sk-very") && !said.contains("secret-123"),
            "{said}"
        );
        assert!(said.len() < 6000, "{} bytes", said.len());
    }
    let other = format!(
        r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":"{}"}}]}}"#,
        "z".repeat(2 << 20)
    );
    let server = Server::start([Reply::Close(stream(other))]).await;
    let (result, events) = Rig::at(server.port).ask().await;
    assert_eq!(result, Ok(()));
    let stop = events.last().unwrap();
    assert!(
        format!("{stop:?}").len() < 2000,
        "a stop reason becomes a record"
    );
}

/// agent-os#657, openclaw#9562 and others: each server has its own words for a context that is full.
#[test]
fn a_full_context_is_known_in_each_servers_words() {
    let full = [
        "Your input exceeds the context window of this model.",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Input is too long for requested model.",
        "Prompt exceeds max length",
        "Prompt 超长",
        "prompt token count of 142339 exceeds the limit of 128000",
        "Range of input length should be [1, 129024]",
        "Please reduce the length of the messages or completion.",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "Input length (9000) exceeds the maximum allowed length (8186).",
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        "Total tokens of image and text exceed max message tokens",
        "invalid params, context window exceeds limit (2013)",
        "Too many tokens: the total is 9000",
        "total message token length exceed model limit",
        "tokens in request more than max tokens allowed: 5000 > 4096",
        "The sum of prompt tokens and max_tokens exceeds the model context",
        "max_prompt_tokens exceeded",
        "\u{8bf7}\u{6c42}\u{8f93}\u{5165}\u{8d85}\u{8fc7}\u{6a21}\u{578b}\u{6700}\u{5927}\u{957f}\u{5ea6}",
    ];
    let other = [
        "max_tokens is too large: 100000",
        "Too many tokens, please wait before trying again.",
        "Request too large on tokens per minute: Limit 30000, Requested 35000",
        "Unknown parameter: 'tools[0].parameters.length'",
    ];
    for (words, want) in full
        .map(|words| (words, true))
        .into_iter()
        .chain(other.map(|words| (words, false)))
    {
        for status in [Some(400), None] {
            let error = VendorError::saying(words);
            let failure =
                Failure::refused(status, RetryAdvice::default(), &error, words.to_owned());
            assert_eq!(failure.kind() == ErrorKind::Exhausted, want, "{words}");
            let terms = TERMS;
            let place = RequestContext {
                url: "http://x",
                model: "m",
                key: KeyStatus::None,
                terms: &terms,
            };
            let help = failure.into_error(1, &place).help;
            assert_eq!(
                help.is_some_and(|help| help.ends_with(TERMS.full_context)),
                want,
                "{words}"
            );
        }
    }
    for (label, status) in [
        ("model_max_prompt_tokens_exceeded", 400),
        ("1261", 400),
        ("context_length_exceeded", 500),
    ] {
        let error = VendorError {
            labels: vec![label.to_owned()],
            ..VendorError::saying("no")
        };
        let failure = Failure::refused(
            Some(status),
            RetryAdvice::default(),
            &error,
            "no".to_owned(),
        );
        assert_eq!(failure.kind(), ErrorKind::Exhausted, "{label}");
    }
}

/// hermes#65631, goose#8021: an error with status 200 was five attempts, and "the answer has no end".
#[tokio::test]
async fn an_error_with_a_good_status_is_told_in_its_own_words() {
    let json = "content-type: application/json\r\n";
    let table = [
        (
            "200 OK",
            json,
            r#"{"object":"error","message":"WHY","code":400}"#,
            ErrorKind::FixInput,
            "WHY",
            1,
        ),
        (
            "200 OK",
            json,
            r#"{"type":"error","error":{"type":"authentication_error","message":"WHY"}}"#,
            ErrorKind::Denied,
            "WHY",
            1,
        ),
        (
            "200 OK",
            json,
            r#"{"code":"InvalidParameter","message":"WHY"}"#,
            ErrorKind::FixInput,
            "WHY",
            1,
        ),
        (
            "202 Accepted",
            json,
            r#"{"detail":"WHY"}"#,
            ErrorKind::Unavailable,
            "WHY",
            5,
        ),
        (
            "200 OK",
            "content-type: text/plain\r\n",
            "WHY",
            ErrorKind::Unavailable,
            "WHY",
            5,
        ),
        (
            "200 OK",
            "",
            "",
            ErrorKind::Unavailable,
            "HTTP 200 OK with an empty body",
            5,
        ),
        (
            "202 Accepted",
            "",
            "",
            ErrorKind::Unavailable,
            "HTTP 202 Accepted with an empty body",
            5,
        ),
        (
            "200 OK",
            "",
            "\n<!doctype html><p>WHY",
            ErrorKind::FixInput,
            "an HTML page",
            1,
        ),
        (
            "200 OK",
            "content-encoding: gzip\r\n",
            "WHY",
            ErrorKind::Unavailable,
            "compressed (gzip)",
            1,
        ),
        (
            "400 Bad Request",
            "content-encoding: br\r\n",
            "WHY",
            ErrorKind::FixInput,
            "compressed (br)",
            1,
        ),
        (
            "409 Conflict",
            "x-should-retry: false\r\n",
            r#"{"error":"WHY"}"#,
            ErrorKind::Unavailable,
            "WHY",
            1,
        ),
    ];
    for (line, headers, body, kind, message, attempts) in table {
        let server = Server::start((0..5).map(|_| Reply::Keep(status(line, headers, body)))).await;
        let (result, _) = Rig::at(server.port).ask().await;
        let error = result.unwrap_err();
        assert_eq!(
            (error.kind, server.seen().len()),
            (kind, attempts),
            "{body}: {error:?}"
        );
        assert!(error.message.contains(message), "{body}: {}", error.message);
    }
    // Without a length, the end of the connection ends the words.
    let open = "HTTP/1.1 200 OK\r\n\r\nno model is loaded\n".to_owned();
    let server = Server::start((0..5).map(|_| Reply::Close(open.clone()))).await;
    let (result, _) = Rig::at(server.port).ask().await;
    assert!(result.unwrap_err().message.contains("no model is loaded"));
}

fn finished(delta: &str, reason: &str) -> Reply {
    let text =
        format!("data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":\"{reason}\"}}]}}\n\n");
    Reply::Keep(streamed(&text, 64))
}

/// pi#9681: an answer that stops for a tool call and has none was a silent end.
#[tokio::test]
async fn an_empty_answer_is_asked_again_once() {
    let nothing = "{}";
    let blank = r#"{"content":" \n"}"#;
    let words = r#"{"content":"x"}"#;
    type Row = (
        &'static str,
        Vec<Reply>,
        Result<StopReason, &'static str>,
        usize,
    );
    let table: [Row; 6] = [
        (
            "empty once",
            vec![finished(nothing, "stop"), finished(words, "stop")],
            Ok(StopReason::EndTurn),
            2,
        ),
        (
            "blank once",
            vec![finished(blank, "stop"), finished(words, "stop")],
            Ok(StopReason::EndTurn),
            2,
        ),
        (
            "empty twice: as it is",
            vec![finished(nothing, "stop"), finished(nothing, "stop")],
            Ok(StopReason::EndTurn),
            2,
        ),
        (
            "refused",
            vec![finished(nothing, "content_filter")],
            Ok(StopReason::Refusal),
            1,
        ),
        (
            "a call once",
            vec![finished(words, "tool_calls"), finished(words, "stop")],
            Ok(StopReason::EndTurn),
            2,
        ),
        (
            "a call twice",
            vec![
                finished(words, "tool_calls"),
                finished(nothing, "tool_calls"),
            ],
            Err("contains none"),
            2,
        ),
    ];
    for (case, replies, want, attempts) in table {
        let server = Server::start(replies).await;
        let (result, events) = Rig::at(server.port).ask().await;
        assert_eq!(server.seen().len(), attempts, "{case}");
        match want {
            Ok(stop) => {
                assert_eq!(
                    (result, events.last()),
                    (Ok(()), Some(&ModelEvent::Stop(stop))),
                    "{case}"
                );
                assert_eq!(
                    events
                        .iter()
                        .filter(|event| matches!(event, ModelEvent::Stop(_)))
                        .count(),
                    1,
                    "{case}"
                );
            }
            Err(words) => assert!(result.unwrap_err().message.contains(words), "{case}"),
        }
    }
}

fn notices(events: &[ModelEvent]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| {
            if let ModelEvent::Notice(words) = event {
                Some(words.as_str())
            } else {
                None
            }
        })
        .collect()
}

#[tokio::test]
async fn people_are_told_of_a_silence_and_of_lines_that_were_skipped() {
    const GOOD: &str =
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = Server::start([Reply::Keep(streamed(
        &format!("data: oops\n\n{GOOD}data: [1\n\n"),
        9,
    ))])
    .await;
    let (result, events) = Rig::at(server.port).ask().await;
    assert_eq!((result, notices(&events).len()), (Ok(()), 1));
    assert!(notices(&events)[0].contains("2 lines"), "{events:?}");
    for sent in [String::new(), begun("data: ", 3)] {
        let server = Server::start([Reply::Hang(sent)]).await;
        let mut rig = Rig::at(server.port);
        rig.model.quiet = Duration::from_millis(30);
        let (sender, mut receiver) = tokio::sync::mpsc::channel(8);
        let body = super::loopback::body(1);
        tokio::select! {
            _ended = rig.model.answer(&body, &sender) => panic!("the server hangs"),
            event = receiver.recv() => {
                let event = event.unwrap();
                assert!(notices(std::slice::from_ref(&event))[0].contains("nothing has arrived"), "{event:?}");
            }
        }
    }
}

#[test]
fn the_variable_of_the_proxy_is_named() {
    let terms = crate::HelpTerms {
        proxy: "HTTPS_PROXY".to_owned(),
        ..TERMS
    };
    for cause in [
        http_client::HttpErrorKind::Connect(None),
        http_client::HttpErrorKind::Tls,
        http_client::HttpErrorKind::Proxy,
    ] {
        let place = RequestContext {
            url: "http://x",
            model: "m",
            key: KeyStatus::None,
            terms: &terms,
        };
        let help = Failure::new(cause, "no")
            .into_error(1, &place)
            .help
            .unwrap();
        assert!(
            help.contains("HTTPS_PROXY") && help.ends_with("or add the host to NO_PROXY"),
            "{help}"
        );
    }
}
