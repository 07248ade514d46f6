//! A value as a list of parts, each of which can be shown whole or in less detail.

use crate::json::{Fields, Json};
use crate::strategy::{DataKind, ResultPart, Strategy};
use crate::token_counter::TokenCounter;
use crate::trim;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Names of fields that say which part another one answers.
const ANSWERS: &[&str] = &[
    "parent",
    "parent_id",
    "in_reply_to_id",
    "in_reply_to",
    "reply_to",
    "thread_ts",
];

/// Characters of a text, and elements of a list in a part, that the middle level keeps.
const STANDARD: Limit = Limit {
    characters: 280,
    elements: 8,
};

/// Characters of a text of the least level, which has neither lists nor objects.
const MINIMAL: usize = 80;

/// Most names in the line that says what is missing.
const NAMES: usize = 24;

/// How much of texts and lists is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Characters of a text.
    pub characters: usize,
    /// Elements of a list.
    pub elements: usize,
}

/// What was left out of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Parts of the list that are not there, of how many.
    pub parts: (usize, usize),
    /// Names of fields that are missing in some parts.
    pub fields: BTreeSet<String>,
    /// Texts that were cut; each ends with how much is missing.
    pub texts: usize,
    /// Elements of other lists that are not there.
    pub elements: usize,
}

impl LeftOut {
    /// A line that says it, or nothing.
    pub fn line(&self) -> String {
        let mut all = Vec::new();
        if self.parts.0 > 0 {
            all.push(format!(
                "{} of {} elements left out",
                self.parts.0, self.parts.1
            ));
        }
        if !self.fields.is_empty() {
            let names: Vec<&str> = self.fields.iter().take(NAMES).map(String::as_str).collect();
            let more = match self.fields.len().saturating_sub(NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            all.push(format!(
                "fields left out of some: {}{more}",
                names.join(", ")
            ));
        }
        if self.texts > 0 {
            all.push(format!("{} cut", plural(self.texts, "text")));
        }
        if self.elements > 0 {
            all.push(format!(
                "{} of inner lists left out",
                plural(self.elements, "element")
            ));
        }
        if all.is_empty() {
            String::new()
        } else {
            format!("[shortened: {}]", all.join("; "))
        }
    }
}

fn plural(count: usize, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{end}")
}

/// The way to the longest list that is not inside of another one, as places of fields; none if there is no list.
pub fn main_list(value: &Json<'_>) -> Option<Vec<usize>> {
    fn find(value: &Json<'_>, way: &mut Vec<usize>, best: &mut Option<(usize, Vec<usize>)>) {
        match value {
            Json::List(items) => {
                if best.as_ref().is_none_or(|(most, _)| items.len() > *most) {
                    *best = Some((items.len(), way.clone()));
                }
            }
            Json::Object(fields) => {
                for (at, (_, value)) in fields.iter().enumerate() {
                    way.push(at);
                    find(value, way, best);
                    way.pop();
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => {}
        }
    }
    let mut best = None;
    find(value, &mut Vec::new(), &mut best);
    best.map(|(_, way)| way)
}

/// The value at the end of a way.
pub fn at<'v, 'a>(value: &'v Json<'a>, way: &[usize]) -> Option<&'v Json<'a>> {
    way.iter().try_fold(value, |value, place| match value {
        Json::Object(fields) => fields.get(*place).map(|(_, value)| value),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => None,
    })
}

/// The value with another one at the end of a way.
pub fn with<'a>(value: &Json<'a>, way: &[usize], new: Json<'a>) -> Json<'a> {
    match (value, way.split_first()) {
        (Json::Object(fields), Some((place, rest))) => {
            let mut new = Some(new);
            let field = |(at, (name, value)): (usize, &(Cow<'a, str>, Json<'a>))| {
                let value = match new.take_if(|_| at == *place) {
                    Some(new) => with(value, rest, new),
                    None => value.clone(),
                };
                (name.clone(), value)
            };
            Json::Object(fields.iter().enumerate().map(field).collect())
        }
        _ => new,
    }
}

/// Whether parts of a list answer others.
pub fn kind_of(items: &[Json<'_>]) -> DataKind {
    if items.iter().any(is_answer) {
        DataKind::Thread
    } else {
        DataKind::List
    }
}

fn is_answer(item: &Json<'_>) -> bool {
    let Json::Object(fields) = item else {
        return false;
    };
    let text = |of: &str| {
        fields
            .iter()
            .find(|(name, _)| name == of)
            .map(|(_, value)| value)
    };
    // The first message of a thread names itself.
    let own = text("ts");
    let names =
        |name: &&str| text(name).is_some_and(|value| *value != Json::Null && Some(value) != own);
    ANSWERS.iter().any(names)
}

/// A list within a budget, and what is missing.
pub fn fit<'a>(
    items: &[Json<'a>],
    strategy: Strategy,
    counter: TokenCounter,
    budget: u64,
) -> (Json<'a>, LeftOut) {
    let of = items.len();
    let mut ways = Vec::with_capacity(of);
    for (at, item) in items.iter().enumerate() {
        let tokens = |value: &Json<'_>| counter.count(&value.compact()) + 1;
        let less = |way| tokens(&in_detail(item, way, &mut LeftOut::default()));
        let whole = tokens(item);
        let value = strategy.value(ResultPart {
            at,
            of,
            tokens: whole,
            is_answer: is_answer(item),
        });
        ways.push(vec![
            (whole, value * 10),
            (less(1), value * 9),
            (less(2), value * 6),
        ]);
    }
    let mut shown = Vec::new();
    let mut left_out = LeftOut::default();
    for (item, way) in items.iter().zip(trim::choose(&ways, budget)) {
        shown.extend(way.map(|way| in_detail(item, way, &mut left_out)));
    }
    left_out.parts = (of - shown.len(), of);
    (Json::List(shown), left_out)
}

/// A part, from 0, the whole, to 2, its short fields.
fn in_detail<'a>(item: &Json<'a>, way: usize, left_out: &mut LeftOut) -> Json<'a> {
    match way {
        0 => item.clone(),
        1 => limited(item, STANDARD, left_out),
        _ => minimal(item, left_out),
    }
}

/// The short fields of a part.
fn minimal<'a>(item: &Json<'a>, left_out: &mut LeftOut) -> Json<'a> {
    let Json::Object(fields) = item else {
        return limited(
            item,
            Limit {
                characters: MINIMAL,
                elements: 1,
            },
            left_out,
        );
    };
    let mut kept = Fields::new();
    for (name, value) in fields {
        let is_short = match value {
            Json::Text(text) => text.chars().nth(MINIMAL).is_none(),
            Json::List(items) => items.is_empty(),
            Json::Object(fields) => fields.is_empty(),
            Json::Null | Json::Bool(_) | Json::Number(_) => true,
        };
        if is_short {
            kept.push((name.clone(), value.clone()));
        } else {
            left_out.fields.insert(name.to_string());
        }
    }
    Json::Object(kept)
}

/// A value with shorter texts and lists.
pub fn limited<'a>(value: &Json<'a>, limit: Limit, left_out: &mut LeftOut) -> Json<'a> {
    match value {
        Json::Text(text) => {
            let Some((end, _)) = text.char_indices().nth(limit.characters) else {
                return value.clone();
            };
            left_out.texts += 1;
            let (head, rest) = text.split_at_checked(end).unwrap_or((text, ""));
            Json::Text(format!("{head}… [{} more characters]", rest.chars().count()).into())
        }
        Json::List(items) => {
            left_out.elements += items.len().saturating_sub(limit.elements);
            let kept = items.iter().take(limit.elements);
            Json::List(kept.map(|item| limited(item, limit, left_out)).collect())
        }
        Json::Object(fields) => {
            let field = |(name, value): &(Cow<'a, str>, Json<'a>)| {
                (name.clone(), limited(value, limit, left_out))
            };
            Json::Object(fields.iter().map(field).collect())
        }
        scalar => scalar.clone(),
    }
}
