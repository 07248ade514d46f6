//! Lists that a vendor gives in pieces, each of which names the next one. A page of ours is cut from them without repeats:
//! the newest walk through a list is kept, so that the next page goes on where the last one ended.

use crate::ServiceFault;
use crate::entity::Named;
use crate::page::{ItemPage, MAX_ITEMS, Pagination, Slice};
use llm_worker::ErrorKind;
use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Most pieces that one page may need.
const MAX_PIECES: usize = 250;

/// A piece of a list, as a vendor gives it, without what is not meant.
#[derive(Debug)]
pub struct Piece<T> {
    pub items: Vec<T>,
    /// What asks for the next piece; none after the last one.
    pub next: Option<String>,
    /// All items, where the vendor says how many.
    pub total: Option<u64>,
}

/// The newest walk through lists of one kind.
#[derive(Debug)]
pub struct Walks<T>(Mutex<Option<Walk<T>>>);

impl<T> Default for Walks<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[derive(Debug)]
struct Walk<T> {
    /// What the list is of.
    query: String,
    /// Items before `ready`.
    passed: usize,
    ready: VecDeque<T>,
    next: Next,
    total: Option<u64>,
    seen: HashSet<String>,
}

#[derive(Debug)]
enum Next {
    First,
    At(String),
    End,
}

impl<T: Named> Walk<T> {
    fn new(query: &str) -> Self {
        Self {
            query: query.to_owned(),
            passed: 0,
            ready: VecDeque::new(),
            next: Next::First,
            total: None,
            seen: HashSet::new(),
        }
    }

    /// Adds a piece without what was there before: lists change while they are read.
    fn take(&mut self, piece: Piece<T>) {
        for item in piece.items {
            if self.seen.insert(item.key().to_owned()) {
                self.ready.push_back(item);
            }
        }
        self.total = piece.total.or(self.total);
        self.next = piece.next.map_or(Next::End, Next::At);
    }

    fn skip_to(&mut self, offset: usize) {
        let many = offset.saturating_sub(self.passed).min(self.ready.len());
        self.ready.drain(..many);
        self.passed += many;
    }
}

impl<T: Named> Walks<T> {
    /// A page of the list of this query. `ask` gets a piece: the first one, or the one that a piece named as next.
    /// A page that follows the last one continues its walk, any other begins anew.
    ///
    /// # Errors
    /// Those of `ask`; `Exhausted` if the page would need over 250 pieces or is behind the first 10,000 items.
    pub async fn page<F>(
        &self,
        query: &str,
        slice: Slice,
        mut ask: impl FnMut(Option<String>) -> F,
    ) -> Result<ItemPage<T>, ServiceFault>
    where
        F: Future<Output = Result<Piece<T>, ServiceFault>>,
    {
        let offset = slice.offset as usize;
        let limit = slice.limit as usize;
        if slice.offset >= MAX_ITEMS {
            return Err(too_far());
        }
        let kept = self.kept().take();
        let mut walk = kept
            .filter(|walk| offset > 0 && walk.query == query && walk.passed <= offset)
            .unwrap_or_else(|| Walk::new(query));
        for _piece in 0..MAX_PIECES {
            walk.skip_to(offset);
            // One more shows whether there is more.
            let is_whole = walk.passed == offset && walk.ready.len() > limit;
            let next = match std::mem::replace(&mut walk.next, Next::End) {
                next if is_whole => {
                    walk.next = next;
                    return Ok(self.cut(walk, slice));
                }
                Next::End => return Ok(self.cut(walk, slice)),
                Next::First => None,
                Next::At(next) => Some(next),
            };
            let piece = ask(next).await?;
            walk.take(piece);
        }
        Err(too_far())
    }

    /// Cuts the page and keeps the rest.
    fn cut(&self, mut walk: Walk<T>, slice: Slice) -> ItemPage<T> {
        let many = walk.ready.len().min(slice.limit as usize);
        let items: Vec<T> = walk.ready.drain(..many).collect();
        walk.passed += many;
        let has_more = !walk.ready.is_empty() || !matches!(walk.next, Next::End);
        let total = match (has_more, walk.total) {
            (false, None) => u64::try_from(walk.passed).ok(),
            (_, total) => total,
        };
        *self.kept() = Some(walk);
        let pagination = Pagination {
            offset: slice.offset,
            limit: slice.limit,
            total,
            has_more,
            next_cursor: None,
        };
        ItemPage { items, pagination }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Walk<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn too_far() -> ServiceFault {
    let message = format!(
        "the list is not read so far (the end is at {MAX_ITEMS} items, or {MAX_PIECES} requests for a page); narrow the query"
    );
    ServiceFault::new(ErrorKind::Exhausted, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(future)
    }

    use crate::entity::User;

    fn user(id: impl ToString) -> User {
        User {
            id: id.to_string(),
            ..User::default()
        }
    }

    fn ids(page: &ItemPage<User>) -> Vec<String> {
        page.items.iter().map(|of| of.id.clone()).collect()
    }

    /// A list in pieces of 100 by their position, as trackers with page numbers do it.
    fn piece(list: &[u32], next: Option<&str>) -> Piece<User> {
        let at: usize = next.map_or(0, |next| next.parse().unwrap());
        let end = (at + 100).min(list.len());
        Piece {
            items: list[at.min(end)..end].iter().map(user).collect(),
            next: (end < list.len()).then(|| end.to_string()),
            total: None,
        }
    }

    #[test]
    fn ten_thousand_items_come_once_each_while_others_are_added() {
        let list = RefCell::new((0..10_000).rev().collect::<Vec<u32>>());
        let asked = Cell::new(0);
        let walks = Walks::default();
        let mut got: Vec<String> = Vec::new();
        loop {
            let slice = Slice::new(got.len().try_into().unwrap(), 70);
            let page = run(walks.page("q", slice, |next| {
                asked.set(asked.get() + 1);
                let piece = piece(&list.borrow(), next.as_deref());
                async { Ok(piece) }
            }))
            .unwrap();
            // A new one stands at the front, and moves all others by one.
            let new = 10_000 + u32::try_from(got.len()).unwrap();
            list.borrow_mut().insert(0, new);
            assert!(page.items.len() == 70 || !page.pagination.has_more);
            got.extend(ids(&page));
            if !page.pagination.has_more || got.len() + 70 > MAX_ITEMS as usize {
                break;
            }
        }
        let once: HashSet<&String> = got.iter().collect();
        assert_eq!(once.len(), got.len());
        let wanted: Vec<String> = (0..10_000)
            .rev()
            .take(got.len())
            .map(|n: u32| n.to_string())
            .collect();
        assert_eq!(got, wanted);
        // Each page went on where the last one ended.
        assert!(asked.get() <= 110, "{}", asked.get());
    }

    #[test]
    fn a_page_is_bounded_and_another_query_begins_anew() {
        let walks = Walks::default();
        let list: Vec<u32> = (0..300).collect();
        let page = |query: &'static str, offset, limit| {
            let slice = Slice::new(offset, limit);
            run(walks.page(query, slice, |next| {
                let piece = piece(&list, next.as_deref());
                async { Ok(piece) }
            }))
        };
        assert_eq!(ids(&page("a", 0, 2).unwrap()), ["0", "1"]);
        assert_eq!(ids(&page("b", 2, 2).unwrap()), ["2", "3"]);
        assert_eq!(page("a", 250, 100).unwrap().items.len(), 50);
        assert_eq!(ids(&page("a", 0, 1).unwrap()), ["0"]);
        let last = page("a", 299, 5).unwrap();
        assert_eq!(
            (last.pagination.has_more, last.pagination.total),
            (false, Some(300))
        );
        assert_eq!(page("a", 10_000, 5).unwrap_err().kind, ErrorKind::Exhausted);
        // A vendor that never ends.
        let endless = run(Walks::default().page("a", Slice::new(0, 5), |_| async {
            Ok(Piece {
                items: vec![user("same")],
                next: Some("0".to_owned()),
                total: None,
            })
        }));
        assert_eq!(endless.unwrap_err().kind, ErrorKind::Exhausted);
    }
}
