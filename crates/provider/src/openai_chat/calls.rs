//! Assigning fragments to calls. Servers differ: the index may be missing or always 0, ids and names may be in the
//! first fragment or in each, and a whole call may come at once, or twice.

use crate::lenient::{ArgumentText, Object, is_object};
use llm_worker::{ModelEvent, ProviderSignature};

/// The field of a call in which Google's endpoint has the signature of the thoughts before it, which it wants back.
pub(super) const EXTRA: &str = "extra_content";

#[derive(Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
    started: usize,
}

#[derive(Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: ArgumentText,
    /// What the provider wants back with it, as JSON.
    extra: String,
    /// Its number in our events, once its name and its place are known.
    number: Option<usize>,
}

/// A part of a call.
struct Part {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Vec<u8>,
    extra: String,
}

impl Part {
    /// `outer` has what stands beside the function.
    fn of(index: Option<u64>, outer: &Object<'_>, function: &Object<'_>) -> Self {
        let extra = outer
            .raw(EXTRA)
            .filter(|extra| extra.starts_with('{'))
            .unwrap_or_default()
            .to_owned();
        let name = function.word("name");
        let arguments = function.text_or_json("arguments");
        Self {
            index,
            id: outer.word("id"),
            name,
            arguments,
            extra,
        }
    }
}

impl Calls {
    pub(super) fn any(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Takes `tool_calls`. Where several parts have neither index nor id nor name, they go on with the calls by position.
    pub(super) fn feed(&mut self, parts: &[Object<'_>], out: &mut Vec<ModelEvent>) {
        let before = self
            .slots
            .len()
            .checked_sub(parts.len())
            .filter(|_| parts.len() > 1);
        for (nth, part) in parts.iter().enumerate() {
            let part = Part::of(part.count("index"), part, &part.object("function"));
            let is_bare = part.index.is_none() && part.id.is_empty() && part.name.is_empty();
            match before
                .and_then(|before| self.slots.get_mut(before + nth))
                .filter(|_| is_bare)
            {
                Some(slot) => {
                    fill(slot, part);
                    self.tell(before.map_or(nth, |before| before + nth), out);
                }
                None => self.take(part, out),
            }
        }
    }

    /// Takes the older form of a single call: a function's name and arguments alone.
    pub(super) fn feed_function(&mut self, function: &Object<'_>, out: &mut Vec<ModelEvent>) {
        self.take(Part::of(None, &Object::default(), function), out);
    }

    fn take(&mut self, part: Part, out: &mut Vec<ModelEvent>) {
        let index = part.index;
        let found = self.find(&part);
        let at = found.unwrap_or(self.slots.len());
        if let Some(slot) = self.slots.get_mut(at) {
            fill(slot, part);
        } else if !(part.id.is_empty() && part.name.is_empty() && part.arguments.is_empty()) {
            let mut slot = Slot {
                index,
                ..Slot::default()
            };
            fill(&mut slot, part);
            self.slots.push(slot);
        }
        self.tell(at, out);
    }

    /// Tells what is known of a call. The order of calls is that of their indices, so a call before which another one may
    /// come is told later, and so is one whose name may go on.
    fn tell(&mut self, at: usize, out: &mut Vec<ModelEvent>) {
        let Some(slot) = self.slots.get(at) else {
            return;
        };
        let is_next = match slot.index {
            None | Some(0) => true,
            Some(index) => self
                .slots
                .iter()
                .any(|slot| slot.index == Some(index - 1) && slot.number.is_some()),
        };
        if !is_next || slot.name.is_empty() || slot.arguments.is_empty() {
            return;
        }
        // One without an index and without arguments is whole once the next one comes.
        for slot in self
            .slots
            .iter_mut()
            .take(at)
            .filter(|slot| slot.index.is_none() && !slot.name.is_empty())
        {
            begin(slot, &mut self.started, out);
        }
        let Some(slot) = self.slots.get_mut(at) else {
            return;
        };
        let index = begin(slot, &mut self.started, out);
        out.extend(
            slot.arguments
                .long_part()
                .map(|fragment| ModelEvent::CallArguments { index, fragment }),
        );
    }

    /// Whether some call never got a name.
    pub(super) fn any_nameless(&self) -> bool {
        self.slots.iter().any(|slot| slot.name.is_empty())
    }

    /// Tells the rest of all calls; `is_cut` if the answer was.
    pub(super) fn finish(&mut self, is_cut: bool, out: &mut Vec<ModelEvent>) {
        self.slots
            .sort_by_key(|slot| (slot.number.is_none(), slot.index));
        for mut slot in self.slots.drain(..) {
            let index = begin(&mut slot, &mut self.started, out);
            let fragment = slot.arguments.finish(is_cut);
            if !fragment.is_empty() {
                out.push(ModelEvent::CallArguments { index, fragment });
            }
        }
    }

    /// The call this continues, or `None` for a new one.
    fn find(
        &self,
        Part {
            index,
            id,
            name,
            arguments,
            ..
        }: &Part,
    ) -> Option<usize> {
        let last = self.slots.len().checked_sub(1);
        let at = match index {
            Some(_) => self.slots.iter().rposition(|slot| slot.index == *index)?,
            None if id.is_empty() => last?,
            None => match self.slots.iter().rposition(|slot| slot.id == *id) {
                Some(at) => at,
                None if name.is_empty() => last?,
                None => return None,
            },
        };
        let slot = self.slots.get(at)?;
        if name.is_empty() || slot.name.is_empty() {
            return Some(at);
        }
        let same_id = !id.is_empty() && slot.id == *id;
        if !id.is_empty() && !slot.id.is_empty() && !same_id {
            return None;
        }
        let fragment = String::from_utf8_lossy(arguments);
        let other_name = index.is_none() && slot.name != *name;
        let after_whole_call = fragment.trim_start().starts_with('{')
            && slot.arguments.is_whole()
            && !slot.arguments.is(&fragment);
        let is_another = match (same_id, index) {
            (false, _) => other_name || after_whole_call,
            (true, Some(_)) => false,
            // One id for two calls: both are whole.
            (true, None) => (other_name || after_whole_call) && is_object(&fragment),
        };
        if is_another { None } else { Some(at) }
    }
}

fn fill(slot: &mut Slot, part: Part) {
    if slot.id.is_empty() {
        slot.id = part.id;
    }
    // A name comes once, in each part, in pieces, or with all of it so far.
    if (slot.name.is_empty() || slot.arguments.is_empty()) && slot.name != part.name {
        let so_far = if part.name.starts_with(&slot.name) {
            String::new()
        } else {
            std::mem::take(&mut slot.name)
        };
        slot.name = so_far + &part.name;
    }
    if slot.extra.is_empty() {
        slot.extra = part.extra;
    }
    slot.arguments.push(part.arguments);
}

/// The number of a call in our events; a new one is told. The first one has the signature for all calls of the answer.
fn begin(slot: &mut Slot, started: &mut usize, out: &mut Vec<ModelEvent>) -> usize {
    *slot.number.get_or_insert_with(|| {
        if *started == 0 && !slot.extra.is_empty() {
            let data = std::mem::take(&mut slot.extra);
            out.push(ModelEvent::Sealed(ProviderSignature {
                kind: EXTRA.to_owned(),
                data,
            }));
        }
        out.push(ModelEvent::CallStarted {
            index: *started,
            name: slot.name.clone(),
        });
        *started += 1;
        *started - 1
    })
}
