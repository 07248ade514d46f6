//! Lists of vendors that name the next piece in the header `Link`.

use super::{Http, HttpReply};
use crate::ServiceFault;
use crate::entity::Named;
use crate::page::{ItemPage, Slice};
use crate::reading;
use crate::values::Values;
use crate::walk::{Piece, Walks};
use serde_json::Value;

/// Most pieces of a list that is read whole.
const MAX_PIECES: usize = 10;

/// A list: where its first piece is.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    path: &'a str,
    at: &'a str,
    filter: &'a str,
}

/// A list that was read whole, unless it was too long.
#[derive(Debug)]
pub struct Whole<T> {
    pub items: Vec<T>,
    pub is_cut: bool,
}

/// The list with the values of a property of arguments, and the JSON pointer in each part at which a value stands.
#[derive(Clone, Copy, Debug)]
pub struct ValueList<'a> {
    pub property: &'static str,
    pub path: &'a str,
    pub at: &'a str,
}

impl<'a> List<'a> {
    /// A list that is the answer at this path.
    #[must_use]
    pub const fn new(path: &'a str) -> Self {
        Self {
            path,
            at: "",
            filter: "",
        }
    }

    /// A list that stands in the answer at this JSON pointer.
    #[must_use]
    pub const fn within(self, at: &'a str) -> Self {
        Self { at, ..self }
    }

    /// A list of which only a part is read: this text says which, for the next page.
    #[must_use]
    pub const fn filtered(self, filter: &'a str) -> Self {
        Self { filter, ..self }
    }
}

impl Http {
    /// A page of a list; `read` reads an item, or leaves it out.
    ///
    /// # Errors
    /// As for [`Self::get`] and [`Walks::page`]; an answer that is no list.
    pub async fn page<T: Named>(
        &self,
        walks: &Walks<T>,
        list: List<'_>,
        slice: Slice,
        read: impl Fn(&Value) -> Result<Option<T>, ServiceFault>,
    ) -> Result<ItemPage<T>, ServiceFault> {
        let read = &read;
        let query = format!("{} {}", list.path, list.filter);
        let ask = |next: Option<String>| async move {
            let path = next.unwrap_or_else(|| list.path.to_owned());
            self.piece(&path, list.at, read).await
        };
        walks.page(&query, slice, ask).await
    }

    /// A page of the list at `path`, of which nothing is left out.
    ///
    /// # Errors
    /// As for [`Self::page`].
    pub async fn page_of<T: Named>(
        &self,
        walks: &Walks<T>,
        path: &str,
        slice: Slice,
        read: impl Fn(&Value) -> Result<T, ServiceFault>,
    ) -> Result<ItemPage<T>, ServiceFault> {
        let read = |of: &Value| read(of).map(Some);
        self.page(walks, List::new(path), slice, read).await
    }

    /// A list as a whole, up to ten pieces of it.
    ///
    /// # Errors
    /// As for [`Self::get`]; an answer that is no list.
    pub async fn whole<T>(
        &self,
        list: List<'_>,
        read: impl Fn(&Value) -> Result<Option<T>, ServiceFault>,
    ) -> Result<Whole<T>, ServiceFault> {
        let mut next = Some(list.path.to_owned());
        let mut items = Vec::new();
        for _ in 0..MAX_PIECES {
            let Some(path) = next.take() else { break };
            let piece = self.piece(&path, list.at, &read).await?;
            items.extend(piece.items);
            next = piece.next;
        }
        Ok(Whole {
            items,
            is_cut: next.is_some(),
        })
    }

    /// The values of a project, as texts in parts of lists. A list that is too long is left out.
    ///
    /// # Errors
    /// As for [`Self::whole`].
    pub async fn values(&self, of: &[ValueList<'_>]) -> Result<Values, ServiceFault> {
        let mut values = Values::new();
        for ValueList { property, path, at } in of {
            let read = |of: &Value| Ok(reading::text(of, at));
            let whole = self.whole(List::new(path), read).await?;
            if !whole.is_cut {
                values.insert(*property, whole.items);
            }
        }
        Ok(values)
    }

    async fn piece<T>(
        &self,
        path: &str,
        at: &str,
        read: impl Fn(&Value) -> Result<Option<T>, ServiceFault>,
    ) -> Result<Piece<T>, ServiceFault> {
        let HttpReply { body, next, .. } = self.get(path).await?;
        let list = body.pointer(at).unwrap_or(&Value::Null);
        let items = reading::each(list, self.vendor(), read)?;
        Ok(Piece {
            items: items.into_iter().flatten().collect(),
            next,
            total: reading::number(&body, "/total_count"),
        })
    }
}

/// A body to send: an object without what is `null`.
#[must_use]
pub fn sent(mut body: Value) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    body
}
