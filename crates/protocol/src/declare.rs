//! How the body of a record is declared: once. What a host acts on, it has to know, so the type that the host writes and
//! reads refuses a word of a later version. A client shows what it can, so the type of the same name in `shown`, which is
//! made from the same declaration, takes any word and keeps what it does not know.

use crate::answer::{Cost, StopReason};
use crate::blob::Digest;
use crate::item::CallId;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Declares bodies of records and their parts.
///
/// The first line of a comment is also the description in the schema. Of a field, `name: T` is always there, `name ?: T`
/// may be absent, `name =: T` is absent when it has its default. One with a `-` before it is only for the host.
macro_rules! bodies {
    ($(#[doc = $doc:literal] $(#[$more:meta])* $name:ident $(: $($derive:ident)+)? { $($fields:tt)* })*) => {
        $(written!(@of [#[doc = $doc] $(#[$more])*] [$($($derive,)+)?] $name [] $($fields)*);)*

        /// These as clients read them.
        pub(crate) mod shown {
            #[allow(unused_imports, reason = "some fields need none")]
            use super::*;

            $(
                shown!(@of #[doc = $doc] $name [] $($fields)*);

                impl crate::declare::ForClients for super::$name {
                    type Type = $name;
                }
            )*
        }
    };
}

/// Declares bodies and parts that are the same for clients: every field is for them, and none has a word.
macro_rules! plain_bodies {
    ($($(#[$head:meta])* $name:ident $(: $($derive:ident)+)? { $($fields:tt)* })*) => {$(
        written!(@of [
            #[derive(Default, Eq, schemars::JsonSchema)]
            #[schemars(extend("additionalProperties" = true))]
            $(#[$head])*
        ] [$($($derive,)+)?] $name [] $($fields)*);

        impl crate::declare::ForClients for $name {
            type Type = Self;
        }
    )*};
}

/// Declares parts that are only for the host.
macro_rules! host_parts {
    ($($(#[$head:meta])* $name:ident $(: $($derive:ident)+)? { $($fields:tt)* })*) => {
        $(written!(@of [$(#[$head])*] [$($($derive,)+)?] $name [] $($fields)*);)*
    };
}

macro_rules! written {
    (@of $head:tt $derive:tt $name:ident [$($done:tt)*] $(#[$meta:meta])* $(-)? $key:ident ?: $type:ty, $($rest:tt)*) => {
        written!(@of $head $derive $name [$($done)* $(#[$meta])*
            #[serde(default, skip_serializing_if = "Option::is_none")] pub $key: Option<$type>,] $($rest)*);
    };
    (@of $head:tt $derive:tt $name:ident [$($done:tt)*] $(#[$meta:meta])* $(-)? $key:ident =: $type:ty, $($rest:tt)*) => {
        written!(@of $head $derive $name [$($done)* $(#[$meta])*
            #[serde(default, skip_serializing_if = "crate::declare::is_default")] pub $key: $type,] $($rest)*);
    };
    (@of $head:tt $derive:tt $name:ident [$($done:tt)*] $(#[$meta:meta])* $(-)? $key:ident: $type:ty, $($rest:tt)*) => {
        written!(@of $head $derive $name [$($done)* $(#[$meta])* pub $key: $type,] $($rest)*);
    };
    (@of [$($head:tt)*] [$($derive:ident,)*] $name:ident [$($done:tt)*]) => {
        #[derive(Clone, Debug, PartialEq, $($derive,)* serde::Serialize, serde::Deserialize)]
        $($head)*
        pub struct $name { $($done)* }
    };
}

macro_rules! shown {
    (@of #[$doc:meta] $name:ident $done:tt $(#[$meta:meta])* - $key:ident $(?)? $(=)? : $type:ty, $($rest:tt)*) => {
        shown!(@of #[$doc] $name $done $($rest)*);
    };
    (@of #[$doc:meta] $name:ident $done:tt $(#[$meta:meta])* $key:ident =: $type:ty, $($rest:tt)*) => {
        shown!(@of #[$doc] $name $done $(#[$meta])* $key ?: $type, $($rest)*);
    };
    (@of #[$doc:meta] $name:ident [$($done:tt)*] $(#[$meta:meta])* $key:ident ?: $type:ty, $($rest:tt)*) => {
        shown!(@of #[$doc] $name [$($done)* $(#[$meta])* #[serde(default, skip_serializing_if = "Option::is_none")]
            pub $key: Option<<$type as crate::declare::ForClients>::Type>,] $($rest)*);
    };
    (@of #[$doc:meta] $name:ident [$($done:tt)*] $(#[$meta:meta])* $key:ident: $type:ty, $($rest:tt)*) => {
        shown!(@of #[$doc] $name [$($done)* $(#[$meta])* pub $key: <$type as crate::declare::ForClients>::Type,] $($rest)*);
    };
    (@of #[$doc:meta] $name:ident [$($done:tt)*]) => {
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[$doc]
        pub struct $name {
            $($done)*
            /// The fields that are not declared for clients.
            #[serde(flatten)]
            pub other: serde_json::Map<String, serde_json::Value>,
        }

        impl crate::declare::ForClients for $name {
            type Type = Self;
        }
    };
}

/// Declares words: of the journal for the host, any text for clients.
macro_rules! words {
    ($($(#[$head:meta])* $name:ident $(: $($derive:ident)+)? { $($(#[$meta:meta])* $variant:ident = $word:literal,)* })*) => {$(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, $($($derive,)+)? serde::Serialize, serde::Deserialize)]
        $(#[$head])*
        pub enum $name { $($(#[$meta])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// As in the journal.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl crate::declare::ForClients for $name {
            type Type = String;
        }
    )*};
}

/// The type that clients read in place of this one.
pub trait ForClients {
    /// How a client reads it.
    type Type;
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

macro_rules! shown_as {
    ($($type:ty => $as:ty,)*) => { $(impl ForClients for $type { type Type = $as; })* };
}

shown_as! {
    bool => bool,
    i32 => i32,
    u32 => u32,
    u64 => u64,
    [u64; 2] => [u64; 2],
    String => String,
    Arc<str> => String,
    BTreeMap<String, u64> => BTreeMap<String, u64>,
    CallId => String,
    Digest => String,
    Cost => u64,
    StopReason => Value,
    Value => Value,
}

impl<T: ForClients> ForClients for Option<T> {
    type Type = Option<T::Type>;
}

impl<T: ForClients> ForClients for Vec<T> {
    type Type = Vec<T::Type>;
}
