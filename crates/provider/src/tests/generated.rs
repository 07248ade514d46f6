//! Generated streams of answers, with types, order, cuts and encodings as servers mutate them: no whole answer is lost.
//!
//! Each answer is written as one API streams it. What the vendors' own clients make of it (fields of a delta are appended,
//! calls are told apart by their index, input JSON is joined) is known, because the answer is. `YOI_TEST_STREAMS` says how
//! many there are.

use super::{Decode, anthropic, join, openai_chat};
use crate::endpoint::Wire;
use llm_worker::{ModelEvent, StopReason};
use serde_json::{Map, Value, json};

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() >> 16) as usize % most
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }

    fn of<T: Clone>(&mut self, any: &[T]) -> T {
        any[self.below(any.len())].clone()
    }

    /// Cuts into some pieces, none of them empty.
    fn cut<T: Clone>(&mut self, whole: &[T]) -> Vec<Vec<T>> {
        let mut pieces = Vec::new();
        let mut rest = whole;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(1 + self.below(rest.len().min(9)));
            pieces.push(piece.to_vec());
            rest = behind;
        }
        pieces
    }
}

struct Answer {
    reasoning: String,
    text: String,
    calls: Vec<(String, Value)>,
    is_cut: bool,
}

const WORDS: [&str; 10] = [
    "fn main() ",
    "Grüße 🌍",
    "\n",
    "\"quoted\" \\ ",
    "日本",
    "a",
    "{\"x\": ",
    "👩‍💻",
    "data: ",
    "\u{1F600}\u{1F600}",
];

fn words(dice: &mut Dice) -> String {
    (0..1 + dice.below(5)).map(|_| dice.of(&WORDS)).collect()
}

fn answer(dice: &mut Dice) -> Answer {
    let reasoning = if dice.one_in(3) {
        words(dice)
    } else {
        String::new()
    };
    let count = dice.below(4);
    let text = if count == 0 || dice.one_in(2) {
        format!("{}.", words(dice))
    } else {
        String::new()
    };
    let calls = (0..count).map(|nth| {
        let mut arguments = Map::new();
        for key in ["path", "size", "deep"].into_iter().take(dice.below(4)) {
            let value = match key {
                "path" => json!(words(dice)),
                "size" => json!(dice.below(9000)),
                _deep => json!({ "list": [dice.below(9), null, words(dice)] }),
            };
            arguments.insert(key.to_owned(), value);
        }
        // Two calls of one answer are not the same.
        arguments.insert("nth".to_owned(), json!(nth));
        let arguments = if dice.one_in(5) {
            Map::new()
        } else {
            arguments
        };
        (format!("Tool{nth}"), Value::Object(arguments))
    });
    let calls: Vec<_> = calls.collect();
    let is_cut = calls.is_empty() && dice.one_in(4);
    Answer {
        reasoning,
        text,
        calls,
        is_cut,
    }
}

/// A JSON string of some UTF-16 units, each escaped or not; halves of characters are always escaped.
fn quoted(units: &[u16], dice: &mut Dice) -> String {
    let mut json = String::from("\"");
    for read in char::decode_utf16(units.iter().copied()) {
        match read {
            Ok(c) if dice.one_in(8) => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| json.push_str(&format!("\\u{unit:04X}"))),
            Ok(c) => {
                let plain = serde_json::to_string(&c).unwrap();
                json.push_str(&plain[1..plain.len() - 1]);
            }
            Err(half) => json.push_str(&format!("\\u{:04x}", half.unpaired_surrogate())),
        }
    }
    json + "\""
}

/// Text in pieces, each a JSON string; characters may be cut in their middle.
fn pieces(text: &str, dice: &mut Dice) -> Vec<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    dice.cut(&units)
        .iter()
        .map(|piece| quoted(piece, dice))
        .collect()
}

/// The fields of an object in any order, with some that nobody knows.
fn object(mut fields: Vec<String>, dice: &mut Dice) -> String {
    if dice.one_in(4) {
        fields.push(
            dice.of(&[
                "\"x_unknown\":{\"deep\":[1e999,\"\\ud800\"]}",
                "\"obfuscation\":\"ab\"",
                "\"nothing\":null",
            ])
            .to_owned(),
        );
    }
    for at in (1..fields.len()).rev() {
        fields.swap(at, dice.below(at + 1));
    }
    format!("{{{}}}", fields.join(","))
}

/// A count, as servers write it.
fn count(dice: &mut Dice) -> String {
    dice.of(&[
        "12", "12.0", "\"12\"", "-1", "null", "[1]", "{}", "1e999", "true", "1.5",
    ])
    .to_owned()
}

/// How the arguments of one call are sent, with the JSON value of each part.
fn arguments(value: &Value, dice: &mut Dice) -> Vec<String> {
    let text = value.to_string();
    let whole = quoted(&text.encode_utf16().collect::<Vec<_>>(), dice);
    let mut parts = pieces(&text, dice);
    match dice.below(7) {
        0 if value == &json!({}) => vec![dice.of(&["\"\"", "null", "\"{}\""]).to_owned()],
        1 => vec![text],
        2 => vec![whole],
        3 => parts.into_iter().chain([whole]).collect(),
        4 => vec![whole.clone(), whole],
        5 => {
            let units: Vec<u16> = text.encode_utf16().collect();
            let mut ends: Vec<usize> = (0..3).map(|_| 1 + dice.below(units.len())).collect();
            ends.sort_unstable();
            ends.iter()
                .chain([&units.len()])
                .map(|end| quoted(&units[..*end], dice))
                .collect()
        }
        _pieces => {
            if dice.one_in(3) {
                parts.insert(0, "\"\"".to_owned());
            }
            parts
        }
    }
}

/// Events as a stream: with its line ends, comments, and perhaps a line that is no JSON.
fn stream(events: Vec<String>, names: bool, dice: &mut Dice) -> (String, bool) {
    let end = dice.of(&["\n", "\r\n", "\r"]);
    let space = dice.of(&["", " "]);
    let mut text = if dice.one_in(8) {
        "\u{feff}".to_owned()
    } else {
        String::new()
    };
    let bad = dice.one_in(6).then(|| dice.below(events.len()));
    for (at, event) in events.iter().enumerate() {
        if dice.one_in(9) {
            text.push_str(&format!(": keep-alive{end}{end}"));
        }
        if bad == Some(at) {
            text.push_str(&format!(
                "data:{space}{}{end}{end}",
                dice.of(&["{oops", "upstream hiccup", "[1,", "\"text\""])
            ));
        }
        if names {
            text.push_str(&format!("event: any{end}"));
        }
        text.push_str(&format!("data:{space}{event}{end}{end}"));
    }
    (text, bad.is_some())
}

/// An answer in the form of chat completions.
fn chat(answer: &Answer, dice: &mut Dice) -> (String, bool) {
    let choice = |fields: Vec<String>, dice: &mut Dice| {
        let delta = object(fields, dice);
        let index = dice.of(&["\"index\":0,", "", "\"index\":null,", "\"index\":0.0,"]);
        object(
            vec![format!("\"choices\":[{{{index}\"delta\":{delta}}}]")],
            dice,
        )
    };
    let mut events = Vec::new();
    let key = dice.of(&["reasoning_content", "reasoning"]);
    for piece in pieces(&answer.reasoning, dice) {
        events.push(choice(vec![format!("\"{key}\":{piece}")], dice));
    }
    for piece in pieces(&answer.text, dice) {
        let null = dice.one_in(3).then(|| "\"tool_calls\":null".to_owned());
        events.push(choice(
            [format!("\"content\":{piece}")]
                .into_iter()
                .chain(null)
                .collect(),
            dice,
        ));
    }
    // The parts of one call in order; those of different calls mixed, if they have an index.
    let has_index = !dice.one_in(4);
    let repeats = dice.one_in(3);
    let has_ids = !dice.one_in(4);
    let mut queues: Vec<Vec<String>> = Vec::new();
    for (nth, (name, value)) in answer.calls.iter().enumerate() {
        let parts = arguments(value, dice)
            .into_iter()
            .enumerate()
            .map(|(at, part)| {
                let first = at == 0 || repeats;
                let mut function = vec![format!("\"arguments\":{part}")];
                function.extend(first.then(|| format!("\"name\":\"{name}\"")));
                let mut fields = vec![format!("\"function\":{}", object(function, dice))];
                fields.extend(has_index.then(|| {
                    format!(
                        "\"index\":{}",
                        dice.of(&[format!("{nth}"), format!("\"{nth}\""), format!("{nth}.0")])
                    )
                }));
                let id = if has_ids {
                    format!("\"id\":\"call_{nth}\"")
                } else {
                    "\"id\":null".to_owned()
                };
                fields.extend(first.then_some(id));
                object(fields, dice)
            });
        queues.push(parts.collect());
    }
    while let Some(first) = queues.iter().position(|queue| !queue.is_empty()) {
        let at = if has_index {
            dice.below(queues.len())
        } else {
            first
        };
        if !queues[at].is_empty() {
            let part = queues[at].remove(0);
            let null = if dice.one_in(9) { ",null" } else { "" };
            events.push(choice(vec![format!("\"tool_calls\":[{part}{null}]")], dice));
        }
    }
    let finish = match (answer.is_cut, answer.calls.is_empty()) {
        (true, _) => "length",
        (false, true) => "stop",
        (false, false) => dice.of(&["stop", "tool_calls"]),
    };
    let usage = format!(
        "\"usage\":{{\"prompt_tokens\":{},\"completion_tokens\":{}}}",
        count(dice),
        count(dice)
    );
    let end = format!(
        "\"choices\":[{{\"finish_reason\":\"{finish}\",\"delta\":{}}}]",
        dice.of(&["{}", "null", "{\"content\":\"\"}"])
    );
    if dice.one_in(2) {
        events.push(object(vec![end, usage], dice));
    } else {
        events.push(object(vec![end], dice));
        events.push(object(vec!["\"choices\":[]".to_owned(), usage], dice));
    }
    if dice.one_in(2) {
        events.push("[DONE]".to_owned());
    }
    stream(events, false, dice)
}

/// An answer in the form of the Messages API.
fn messages(answer: &Answer, dice: &mut Dice) -> (String, bool) {
    let usage = |dice: &mut Dice| {
        format!(
            "\"usage\":{{\"input_tokens\":{},\"output_tokens\":{}}}",
            count(dice),
            count(dice)
        )
    };
    let mut events = vec![format!(
        "{{\"type\":\"message_start\",\"message\":{{\"role\":\"assistant\",{}}}}}",
        usage(dice)
    )];
    let mut blocks: Vec<(String, Vec<String>)> = Vec::new();
    let deltas = |kind: &str, key: &str, parts: Vec<String>, dice: &mut Dice| {
        parts
            .iter()
            .map(|part| {
                object(
                    vec![format!("\"type\":\"{kind}\""), format!("\"{key}\":{part}")],
                    dice,
                )
            })
            .collect::<Vec<_>>()
    };
    if !answer.reasoning.is_empty() {
        let parts = pieces(&answer.reasoning, dice);
        blocks.push((
            "{\"type\":\"thinking\",\"thinking\":\"\"}".to_owned(),
            deltas("thinking_delta", "thinking", parts, dice),
        ));
    }
    if !answer.text.is_empty() {
        let parts = pieces(&answer.text, dice);
        blocks.push((
            "{\"type\":\"text\",\"text\":\"\"}".to_owned(),
            deltas("text_delta", "text", parts, dice),
        ));
    }
    for (name, value) in &answer.calls {
        let in_start = dice.one_in(4);
        let input = if in_start {
            value.to_string()
        } else {
            dice.of(&["{}", "null", "\"\""]).to_owned()
        };
        let parts = if in_start {
            vec!["\"\"".to_owned()]
        } else {
            arguments(value, dice)
        };
        let id = dice.of(&["\"toolu_1\"", "7", "null"]);
        let start = object(
            [
                "\"type\":\"tool_use\"".to_owned(),
                format!("\"id\":{id}"),
                format!("\"name\":\"{name}\""),
                format!("\"input\":{input}"),
            ]
            .to_vec(),
            dice,
        );
        blocks.push((
            start,
            deltas("input_json_delta", "partial_json", parts, dice),
        ));
    }
    for (index, (start, deltas)) in blocks.into_iter().enumerate() {
        let at = format!("\"index\":{index}");
        events.push(object(
            vec![
                "\"type\":\"content_block_start\"".to_owned(),
                at.clone(),
                format!("\"content_block\":{start}"),
            ],
            dice,
        ));
        for delta in deltas {
            events.push(object(
                vec![
                    "\"type\":\"content_block_delta\"".to_owned(),
                    at.clone(),
                    format!("\"delta\":{delta}"),
                ],
                dice,
            ));
        }
        if !dice.one_in(6) {
            events.push(format!("{{\"type\":\"content_block_stop\",{at}}}"));
        }
        if dice.one_in(5) {
            events.push("{\"type\":\"ping\"}".to_owned());
        }
    }
    let reason = match (answer.is_cut, answer.calls.is_empty()) {
        (true, _) => "max_tokens",
        (false, true) => "end_turn",
        (false, false) => "tool_use",
    };
    events.push(format!(
        "{{\"type\":\"message_delta\",\"delta\":{{\"stop_reason\":\"{reason}\",\"stop_sequence\":null}},{}}}",
        usage(dice)
    ));
    if !dice.one_in(6) {
        events.push("{\"type\":\"message_stop\"}".to_owned());
    }
    stream(events, dice.one_in(2), dice)
}

/// What history would hold, and whether people are told of a line that was skipped.
fn read<D: Decode>(
    bytes: &[u8],
    sizes: &mut dyn FnMut() -> usize,
) -> Result<(Value, bool), String> {
    let mut decoder = D::default();
    let mut out = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(sizes().min(rest.len()));
        decoder
            .push(piece, &mut out)
            .map_err(|error| format!("{error:?}"))?;
        rest = behind;
    }
    decoder
        .finish(&mut out)
        .map_err(|error| format!("{error:?}"))?;
    let mut said = [Vec::new(), Vec::new()];
    let mut calls = Vec::<(String, String)>::new();
    let mut stop = None;
    let mut told = false;
    for event in out {
        match event {
            ModelEvent::Reasoning(more) => join(&mut said[0], "words", &more),
            ModelEvent::Text(more) => join(&mut said[1], "words", &more),
            ModelEvent::CallStarted { name, .. } => calls.push((name, String::new())),
            ModelEvent::CallArguments { index, fragment } => calls[index].1.push_str(&fragment),
            ModelEvent::Stop(reason) => stop = Some(reason),
            ModelEvent::Notice(_) => told = true,
            _other => {}
        }
    }
    let calls = calls.into_iter().map(|(name, raw)| {
        json!([
            name,
            serde_json::from_str::<Value>(&raw).unwrap_or(json!(raw))
        ])
    });
    let calls: Vec<Value> = calls.collect();
    Ok((
        json!([said[0], said[1], calls, format!("{:?}", stop.unwrap())]),
        told,
    ))
}

fn expected(answer: &Answer) -> Value {
    let stop = match (answer.is_cut, answer.calls.is_empty()) {
        (true, _) => StopReason::MaxTokens,
        (false, true) => StopReason::EndTurn,
        (false, false) => StopReason::ToolUse,
    };
    let mut said = [Vec::new(), Vec::new()];
    for (said, words) in said.iter_mut().zip([&answer.reasoning, &answer.text]) {
        if !words.is_empty() {
            join(said, "words", words);
        }
    }
    let calls: Vec<Value> = answer
        .calls
        .iter()
        .map(|(name, value)| json!([name, value]))
        .collect();
    json!([said[0], said[1], calls, format!("{stop:?}")])
}

#[test]
fn no_generated_answer_is_lost() {
    type Chat = <openai_chat::ChatWire as Wire>::Decoder;
    type Messages = <anthropic::MessagesWire as Wire>::Decoder;
    let streams = std::env::var("YOI_TEST_STREAMS").map_or(300, |count| count.parse().unwrap());
    let mut lost = Vec::new();
    for seed in 0..streams {
        let mut dice =
            Dice(0x9E37_79B9_7F4A_7C15 ^ 0x2545_F491_4F6C_DD1D_u64.wrapping_mul(seed + 1));
        let answer = answer(&mut dice);
        let is_chat = dice.one_in(2);
        let (text, is_bad) = if is_chat {
            chat(&answer, &mut dice)
        } else {
            messages(&answer, &mut dice)
        };
        let want = Ok((expected(&answer), is_bad));
        let read = if is_chat {
            read::<Chat>
        } else {
            read::<Messages>
        };
        let bytes = text.as_bytes();
        let mut cuts = vec![
            read(bytes, &mut || bytes.len()),
            read(bytes, &mut || 1),
            read(bytes, &mut || 1 + dice.below(40)),
        ];
        if seed % 150 == 0 {
            cuts.extend((1..bytes.len()).map(|at| {
                let mut sizes = [at, bytes.len()].into_iter();
                read(bytes, &mut || sizes.next().unwrap())
            }));
        }
        for (cut, got) in cuts.into_iter().enumerate() {
            if got != want {
                lost.push(format!(
                    "seed {seed}, cut {cut}: {got:?}\n  want {want:?}\n{text}"
                ));
                break;
            }
        }
    }
    assert!(
        lost.is_empty(),
        "{} of {streams} are lost; the first:\n{}",
        lost.len(),
        lost[0]
    );
}

/// A bad byte is U+FFFD, and the answer stands.
#[test]
fn bytes_that_are_no_text_lose_no_answer() {
    for bytes in [&b"\xff"[..], b"\xe2\x82", b"\xed\xa0\x80", b"\xc0\xaf"] {
        let stream = [
            b"data: {\"choices\":[{\"delta\":{\"content\":\"a",
            bytes,
            b"b\"},\"finish_reason\":\"stop\"}]}\n\n",
        ]
        .concat();
        let (got, _) =
            read::<<openai_chat::ChatWire as Wire>::Decoder>(&stream, &mut || 5).unwrap();
        let words = got[1][0]["words"].as_str().unwrap();
        assert!(
            words.starts_with("a\u{fffd}") && words.ends_with('b'),
            "{words}"
        );
    }
}
