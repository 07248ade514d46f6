//! Lines of the journal as clients read them. The bodies are declared in `journal`.

pub use crate::journal::shown::*;

use crate::journal::{Record, kinds};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The line of a record, byte for byte as the journal has it, without the newline.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordLine(Box<RawValue>);

impl RecordLine {
    /// # Errors
    /// The line is no JSON.
    pub fn new(line: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(line).map(Self)
    }

    /// The line.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Its header, without its body.
    ///
    /// # Errors
    /// It has none.
    pub fn header(&self) -> Result<RecordHeader, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    /// The record's number.
    ///
    /// # Errors
    /// It has none.
    pub fn seq(&self) -> Result<u64, serde_json::Error> {
        self.header().map(|header| header.seq)
    }

    /// Reads it.
    ///
    /// # Errors
    /// It has no header of a record, or its body does not fit its kind.
    pub fn read(&self) -> Result<RecordView, serde_json::Error> {
        RecordView::read(self.as_str())
    }
}

impl PartialEq for RecordLine {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl JsonSchema for RecordLine {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RecordLine".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "The line of a record, byte for byte as the journal has it.",
            "required": ["q", "t", "k", "v"],
        })
    }
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordView {
    /// Its number in the session, dense from 1.
    pub seq: u64,
    /// Microseconds since 1970.
    pub time_us: u64,
    pub body: RecordBody,
}

/// The header of a line, as far as readers of whole lines need it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RecordHeader {
    /// The record's number in the session.
    #[serde(rename = "q")]
    pub seq: u64,
    /// Microseconds since 1970.
    #[serde(rename = "t")]
    pub time_us: u64,
    #[serde(rename = "k")]
    pub kind: String,
    /// The version of the body.
    #[serde(rename = "v")]
    pub version: u16,
}

/// The keys of the header; the top level of a body has none of one letter.
const HEADER: [&str; 10] = ["c", "n", "p", "e", "q", "d", "b", "t", "k", "v"];

impl RecordView {
    /// Reads a line.
    ///
    /// # Errors
    /// It has no header of a record, or its body does not fit its kind.
    pub fn read(line: &str) -> Result<Self, serde_json::Error> {
        let RecordHeader {
            seq,
            time_us,
            kind,
            version,
        } = serde_json::from_str(line)?;
        let mut fields: Map<String, Value> = serde_json::from_str(line)?;
        fields.retain(|key, _| !HEADER.contains(&key.as_str()));
        Ok(Self {
            seq,
            time_us,
            body: RecordBody::of(kind, version, fields)?,
        })
    }
}

macro_rules! by_kind {
    (shown { $($(#[$doc:meta])* $variant:ident = $kind:literal / $version:literal / $format:literal,)* } host { $($host:tt)* }) => {
        /// The body of a record, by kind.
        #[derive(Clone, Debug, PartialEq)]
        pub enum RecordBody {
            $($variant($variant),)*
            /// A kind that is not drawn, or a kind or version that this program does not know.
            Other { kind: String, fields: Map<String, Value> },
        }

        impl RecordBody {
            /// The kinds that are declared for clients.
            pub const KINDS: &[&str] = &[$($kind,)*];

            fn of(kind: String, version: u16, fields: Map<String, Value>) -> Result<Self, serde_json::Error> {
                Ok(match (kind.as_str(), version) {
                    $(($kind, $version) => Self::$variant(serde_json::from_value(Value::Object(fields))?),)*
                    _ => Self::Other { kind, fields },
                })
            }

            /// The kind's name in the journal.
            #[must_use]
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Other { kind, .. } => kind,
                }
            }

            /// All its fields, with those that are not declared.
            #[must_use]
            pub fn fields(&self) -> Value {
                match self {
                    $(Self::$variant(body) => serde_json::to_value(body).unwrap_or_default(),)*
                    Self::Other { fields, .. } => Value::Object(fields.clone()),
                }
            }
        }

        /// The schemas of the kinds that are declared for clients.
        pub(crate) fn schemas(generator: &mut schemars::SchemaGenerator) -> Map<String, Value> {
            let mut all = Map::new();
            $(all.insert($kind.to_owned(), generator.subschema_for::<$variant>().to_value());)*
            all
        }
    };
}

kinds!(by_kind);

impl From<&Record> for RecordBody {
    fn from(record: &Record) -> Self {
        let kind = record.kind().to_owned();
        let version = record.row().map_or(0, |(_, version, _)| version);
        let fields = match serde_json::to_value(record) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) | Err(_) => Map::new(),
        };
        let shown = Self::of(kind.clone(), version, fields);
        shown.unwrap_or_else(|_| Self::Other {
            kind,
            fields: Map::new(),
        })
    }
}

/// A body or a part of one as the host knows it; none if it has a word of a later version.
#[must_use]
pub fn known<T: DeserializeOwned>(shown: &impl Serialize) -> Option<T> {
    serde_json::from_value(serde_json::to_value(shown).ok()?).ok()
}

impl Stored {
    /// Bytes of the whole stream, including those that were left out.
    #[must_use]
    pub fn total(&self) -> u64 {
        known::<crate::journal::Stored>(self).map_or(self.bytes, |stored| stored.total())
    }
}

impl TurnFinished {
    /// The outcome before the gates at its end have answered: a turn that they judge is not `done` yet.
    #[must_use]
    pub fn before_verdict(&self) -> Outcome {
        let mut outcome = self.outcome.clone();
        if outcome.outcome == "done" && self.other.contains_key("end_gates") {
            outcome.outcome = "answered".to_owned();
        }
        outcome
    }
}
