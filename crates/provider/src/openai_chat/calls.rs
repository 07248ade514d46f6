//! Assigning fragments to calls. Servers differ: the index may be missing or always 0, ids and names may be in the
//! first fragment or in each, and a whole call may come at once.

use super::chunk::CallPart;
use llm_worker::ModelEvent;
use serde::de::IgnoredAny;

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
    text: String,
    /// Its number in our events, once its name is known.
    number: Option<usize>,
}

impl Calls {
    pub(super) fn any(&self) -> bool {
        !self.slots.is_empty()
    }

    pub(super) fn feed(&mut self, part: CallPart, out: &mut Vec<ModelEvent>) {
        let function = part.function.unwrap_or_default();
        let id = part.id.unwrap_or_default();
        let fragment = function.arguments();
        let name = function.name.unwrap_or_default();
        if let Some(at) = self.find(part.index, &id, &name, &fragment).and_then(|at| self.slots.get_mut(at)) {
            fill(at, &mut self.started, id, name, fragment, out);
        } else if !(id.is_empty() && name.is_empty() && fragment.is_empty()) {
            let mut slot = Slot { index: part.index, ..Slot::default() };
            fill(&mut slot, &mut self.started, id, name, fragment, out);
            self.slots.push(slot);
        }
    }

    /// Whether some call never got a name.
    pub(super) fn any_nameless(&self) -> bool {
        self.slots.iter().any(|slot| slot.number.is_none())
    }

    /// The call this continues, or `None` for a new one.
    fn find(&self, index: Option<u64>, id: &str, name: &str, fragment: &str) -> Option<usize> {
        let last = self.slots.len().checked_sub(1);
        let at = match index {
            Some(_) => self.slots.iter().rposition(|slot| slot.index == index)?,
            None if id.is_empty() => last?,
            None => match self.slots.iter().rposition(|slot| slot.id == id) {
                Some(at) => at,
                None if name.is_empty() => last?,
                None => return None,
            },
        };
        let slot = self.slots.get(at)?;
        let same_id = !id.is_empty() && slot.id == id;
        if name.is_empty() || slot.name.is_empty() || same_id {
            return Some(at);
        }
        let other_id = !id.is_empty() && !slot.id.is_empty();
        let other_name = index.is_none() && slot.name != name;
        let after_whole_call = fragment.trim_start().starts_with('{') && is_object(&slot.text);
        if other_id || other_name || after_whole_call { None } else { Some(at) }
    }
}

fn fill(slot: &mut Slot, started: &mut usize, id: String, name: String, fragment: String, out: &mut Vec<ModelEvent>) {
    if slot.id.is_empty() {
        slot.id = id;
    }
    if slot.name.is_empty() {
        slot.name = name;
    }
    slot.text.push_str(&fragment);
    let (index, fragment) = match slot.number {
        Some(number) => (number, fragment),
        None if slot.name.is_empty() => return,
        None => {
            let number = *started;
            *started += 1;
            slot.number = Some(number);
            out.push(ModelEvent::CallStarted { index: number, name: slot.name.clone() });
            (number, slot.text.clone())
        }
    };
    if !fragment.is_empty() {
        out.push(ModelEvent::CallArguments { index, fragment });
    }
}

fn is_object(text: &str) -> bool {
    text.trim_end().ends_with('}') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
