//! Any batches, any reopening, any cut: the log is a prefix of what was written, by whole batches.

use proptest::prelude::*;

use crate::scene::{Notes, Scene, texts};

#[derive(Clone, Debug)]
enum Act {
    Append(Vec<String>),
    Reopen,
    /// The file loses this share of its bytes, of 256, and HEAD.
    Cut(u8),
}

fn act() -> impl Strategy<Value = Act> {
    let batch = prop::collection::vec("(?s).{0,40}", 1..5);
    prop_oneof![6 => batch.prop_map(Act::Append), 2 => Just(Act::Reopen), 1 => any::<u8>().prop_map(Act::Cut)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn the_log_is_what_was_committed(acts in prop::collection::vec(act(), 1..20)) {
        let scene = Scene::new();
        let mut opened = scene.create();
        let mut model: Vec<Vec<String>> = Vec::new();
        for act in acts {
            match act {
                Act::Append(batch) => {
                    let done = opened.journal.append(Notes(batch.clone())).wait().unwrap();
                    prop_assert_eq!(*done.seqs().end(), opened.journal.durable());
                    model.push(batch);
                }
                Act::Reopen => {
                    opened.journal.close();
                    let epoch = opened.recovered.epoch;
                    opened = scene.open().unwrap();
                    prop_assert_eq!(opened.recovered.class, None);
                    prop_assert!(opened.recovered.epoch > epoch);
                }
                Act::Cut(share) => {
                    opened.journal.close();
                    let bytes = std::fs::read(scene.log()).unwrap();
                    let keep = bytes.len() * usize::from(share) / 256;
                    std::fs::write(scene.log(), &bytes[..keep]).unwrap();
                    std::fs::remove_file(scene.head()).unwrap();
                    opened = scene.open().unwrap();
                    let found = texts(&scene.dir);
                    let whole = (0..=model.len()).find(|n| model[..*n].concat() == found);
                    prop_assert!(whole.is_some(), "{:?} is no prefix of {:?}", found, model);
                    model.truncate(whole.unwrap());
                }
            }
        }
        opened.journal.close();
        if !model.is_empty() {
            prop_assert_eq!(texts(&scene.dir), model.concat());
        }
    }
}
