//! What the built-in features may have unless a person says otherwise.

use pod::feature::CapabilityPolicy;

/// The policy of the table of built-in features.
pub fn defaults() -> CapabilityPolicy {
    let grants = builtins::policies::grants();
    grants.fold(CapabilityPolicy::nothing(), |policy, (id, capability)| {
        policy.grant(id, capability, "default")
    })
}

#[cfg(test)]
mod tests {
    use crate::config::file;
    use pod::feature::{
        CapabilityPolicy, CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext,
        FeatureInstallError, FeatureModule, FeatureRegistryBuilder, GrantTable, HostCapability,
        StateScope,
    };
    use pod::hook::ToolArguments;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    const ID: FeatureId = FeatureId::user("asks");

    /// One request of each kind, and the key of `grant = { … }` for it. A kind that is missing here does not compile.
    fn every() -> Vec<(HostCapability, &'static str)> {
        use HostCapability as Can;
        let fs = |write| Can::ScopedFs {
            root: "my dir".into(),
            read: true,
            write,
            execute: false,
        };
        let next = |previous: Option<&Can>| match previous {
            None => Some((Can::tool("Act"), "tools")),
            Some(Can::ContributeTool { .. }) => Some((Can::hook::<ToolArguments>(), "hooks")),
            Some(Can::ContributeHook { .. }) => {
                Some((Can::background_task("tidy"), "background_tasks"))
            }
            Some(Can::ContributeBackgroundTask { .. }) => Some((
                Can::ContributeCommand {
                    name: "review".into(),
                },
                "commands",
            )),
            Some(Can::ContributeCommand { .. }) => Some((Can::ANY_ANSWER, "answers")),
            Some(Can::AnswerCalls { .. }) => Some((Can::ANY_REPEAT, "repeats")),
            Some(Can::RepeatCalls { .. }) => Some((Can::ANY_RESULT, "results")),
            Some(Can::TransformResults { .. }) => Some((Can::ANY_ARGUMENTS, "arguments")),
            Some(Can::RewriteArguments { .. }) => Some((Can::ANY_ENRICHING, "enriches")),
            Some(Can::EnrichTools { .. }) => Some((fs(true), "fs")),
            Some(Can::ScopedFs { .. }) => Some((
                Can::Process {
                    programs: vec!["git".into()].into(),
                    network: false,
                },
                "process",
            )),
            Some(Can::Process { .. }) => Some((Can::provide("example.bell.v1"), "provides")),
            Some(Can::ProvideService { .. }) => Some((Can::using("example.bell.v1"), "services")),
            Some(Can::UseService { .. }) => Some((
                Can::WorkItemStore {
                    read: true,
                    write: true,
                },
                "work_items",
            )),
            Some(Can::WorkItemStore { .. }) => Some((
                Can::MemoryStore {
                    read: true,
                    write: false,
                },
                "memory",
            )),
            Some(Can::MemoryStore { .. }) => Some((Can::network("pages"), "network")),
            Some(Can::Network { .. }) => Some((Can::endpoints("tracker"), "endpoints")),
            Some(Can::Endpoint { .. }) => Some((Can::secret("tracker"), "secrets")),
            Some(Can::SecretRef { .. }) => Some((
                Can::StateStore {
                    scope: StateScope::User,
                },
                "state",
            )),
            Some(Can::StateStore { .. }) => Some((
                Can::EmitModelNotification {
                    max_bytes: 100,
                    per_turn: 2,
                },
                "notifications",
            )),
            Some(Can::EmitModelNotification { .. }) => Some((Can::EmitUserAlert, "alerts")),
            Some(Can::EmitUserAlert) => None,
        };
        let more = [
            (
                Can::Process {
                    programs: vec!["curl".into()].into(),
                    network: true,
                },
                "process_network",
            ),
            (
                Can::ScopedFs {
                    root: "bin".into(),
                    read: true,
                    write: false,
                    execute: true,
                },
                "fs",
            ),
        ];
        std::iter::successors(next(None), |(previous, _)| next(Some(previous)))
            .chain(more)
            .collect()
    }

    struct Asks(Vec<HostCapability>);

    impl FeatureModule for Asks {
        fn descriptor(&self) -> FeatureDescriptor {
            let request = |capability: &HostCapability| {
                CapabilityRequest::required(capability.clone(), "to be tested")
            };
            let builder = FeatureDescriptor::builder(ID).version("1.0.0");
            self.0
                .iter()
                .fold(builder, |builder, asked| builder.request(request(asked)))
                .build()
        }

        fn install(&self, _: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
            Ok(())
        }
    }

    /// The reasons of the denials.
    fn denied(asked: &[HostCapability], policy: CapabilityPolicy) -> Vec<String> {
        let asks: Arc<dyn FeatureModule> = Arc::new(Asks(asked.to_vec()));
        let plan = FeatureRegistryBuilder::new(policy).with(asks).plan();
        plan.features[0]
            .grants
            .denied()
            .iter()
            .map(|denied| denied.reason.clone())
            .collect()
    }

    /// The grant that a denial prints, read as a person's file.
    fn pasted(reason: &str) -> GrantTable {
        let (_, remedy) = reason
            .split_once("; set ")
            .unwrap_or_else(|| panic!("no remedy: {reason}"));
        let (grant, table) = remedy.rsplit_once(" under ").unwrap();
        let mut file = file::parse(&format!("{table}\n{grant}\n"))
            .unwrap_or_else(|e| panic!("{remedy}: {e:?}"));
        file.features
            .remove(&ID.to_string())
            .unwrap()
            .grant
            .unwrap()
    }

    #[test]
    fn what_a_denial_prints_grants_what_was_denied() {
        for (asked, key) in every() {
            let asked = [asked];
            let reasons = denied(&asked, CapabilityPolicy::nothing());
            let [reason] = reasons.as_slice() else {
                panic!("{asked:?}: {reasons:?}")
            };
            let table = pasted(reason);
            let keys = serde_json::to_value(&table).unwrap();
            assert_eq!(
                keys.as_object().unwrap().keys().collect::<Vec<_>>(),
                [key],
                "{reason}"
            );
            let granted = CapabilityPolicy::nothing()
                .configured(&ID, &table, "user.toml")
                .unwrap();
            assert_eq!(denied(&asked, granted), [""; 0], "{reason}");
        }
    }

    #[test]
    fn what_was_granted_before_stays_in_what_a_denial_prints() {
        let all: Vec<HostCapability> = every().into_iter().map(|(asked, _)| asked).collect();
        // A person who pastes one line after the other comes to all of them.
        let mut table = GrantTable::default();
        let empty = r#"{"tools":["Other"],"process":[],"alerts":false,"fs":{"workspace":"read"}}"#;
        table.clone_from(&serde_json::from_str(empty).unwrap());
        for _ in 0..=all.len() {
            let default =
                CapabilityPolicy::nothing().grant(ID, HostCapability::SESSION_STATE, "default");
            let policy = default.configured(&ID, &table, "user.toml").unwrap();
            let reasons = denied(&all, policy.clone());
            let Some(reason) = reasons.first() else {
                let kept = [
                    HostCapability::tool("Other"),
                    HostCapability::READ_WORKSPACE,
                    HostCapability::SESSION_STATE,
                ];
                assert_eq!(denied(&kept, policy), [""; 0]);
                return;
            };
            table = pasted(reason);
        }
        panic!("something is denied for ever");
    }

    #[test]
    fn every_key_of_a_grant_is_documented() {
        let page = include_str!("../../../../docs/CONFIGURATION.md");
        let (_, section) = page.split_once("## Grants of a feature").unwrap();
        let rows = section
            .lines()
            .skip_while(|line| !line.starts_with("| key"))
            .skip(2);
        let rows = rows.take_while(|line| line.starts_with('|'));
        let documented: BTreeSet<&str> = rows
            .flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2))
            .collect();
        let schema = schemars::schema_for!(GrantTable);
        let keys: BTreeSet<&str> = schema
            .get("properties")
            .unwrap()
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(documented, keys);
        let of_capabilities: BTreeSet<&str> = every().into_iter().map(|(_, key)| key).collect();
        assert_eq!(
            of_capabilities, keys,
            "a key that grants nothing, or a capability without a key"
        );
    }
}
