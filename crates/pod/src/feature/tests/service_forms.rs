//! Services as JSON, and several instances of one.

use super::rig::*;
use super::services::{Greeter, Plain, anything};
use crate::feature::*;
use llm_worker::ErrorKind;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const A: ServiceKey<dyn Greeter> = ServiceKey::new("test.a.v1");
const IDS: &[&str] = &["builtin:a", "builtin:b", "builtin:c", "user:a"];

struct Named(&'static str);

impl Greeter for Named {
    fn greet(&self, name: String) -> String {
        format!("{} {name}", self.0)
    }
}

/// The same contract as JSON.
struct AsJson(Arc<dyn Greeter>);

impl JsonService for AsJson {
    fn call(&self, call: JsonCall) -> ServiceFuture<'_, Result<Value, ServiceFault>> {
        Box::pin(async move {
            match (call.method.as_str(), call.params.as_str()) {
                ("greet", Some(name)) => Ok(json!(self.0.greet(name.to_owned()))),
                _ => Err(ServiceFault::new(ErrorKind::FixInput, "greet a name")),
            }
        })
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

fn install(modules: Vec<Arc<dyn FeatureModule>>) -> FeatureRegistry {
    build(anything(IDS), modules).install(&HostServices::none())
}

fn messages(registry: &FeatureRegistry, of: &str) -> String {
    let report = registry.report().feature(&id(of)).unwrap();
    report
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.message.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

/// A feature that provides the instances of these names; one without a name is an empty text.
fn provider(of: &'static str, instances: &'static [&'static str]) -> Arc<dyn FeatureModule> {
    let declared = |name: &str| match name {
        "" => ServiceDeclaration::of(A, "1.0.0"),
        name => ServiceDeclaration::of(A, "1.0.0").instance(name),
    };
    let descriptor = instances.iter().fold(declaring(of, &[]), |builder, name| {
        builder.provides(declared(name))
    });
    with(descriptor.build(), move |ctx| {
        for name in instances {
            match *name {
                "" => ctx.services().provide(A, Arc::new(Named("none")))?,
                name => ctx
                    .services()
                    .provide_instance(A, name, Arc::new(Named(name)))?,
            };
        }
        Ok(())
    })
}

#[test]
fn a_service_is_provided_typed_and_as_json() {
    let descriptor = declaring("builtin:a", &[])
        .provides(ServiceDeclaration::of(A, "1.0.0"))
        .build();
    let gives = with(descriptor, |ctx| {
        ctx.services().provide(A, Arc::new(Plain))?;
        ctx.services()
            .provide_json(&A.id(), Arc::new(AsJson(Arc::new(Plain))))
            .map(drop)
    });
    let heard = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&heard);
    let descriptor = declaring("builtin:b", &[])
        .requires(ServiceRequirement::required(A, "^1"))
        .build();
    let takes = with(descriptor, move |ctx| {
        let typed = ctx.services().require(A)?;
        assert_eq!(
            typed.with(|greeter| greeter.greet("you".into())).unwrap(),
            "hello you"
        );
        *kept.lock().unwrap() = Some(ctx.services().require_json(&A.id())?);
        Ok(())
    });
    let registry = install(vec![gives, takes]);
    assert_eq!(registry.report().order.len(), 2, "{:?}", registry.report());
    let json = heard.lock().unwrap().clone().unwrap();
    let call = |params| {
        block_on(json.call(|service| service.call(JsonCall::new("greet", params)))).unwrap()
    };
    assert_eq!(call(json!("you")), Ok(json!("hello you")));
    assert_eq!(call(json!(1)).unwrap_err().kind, ErrorKind::FixInput);
    // The JSON form stands behind the same door.
    block_on(registry.revoke(
        &id("builtin:b"),
        &HostCapability::using(A.name()),
        Revoke::Now,
    ));
    let revoked = block_on(json.call(|service| service.call(JsonCall::new("greet", json!("you")))));
    assert!(
        matches!(revoked, Err(ServiceError::Revoked { .. })),
        "{revoked:?}"
    );
}

#[test]
fn each_form_is_provided_once_and_required_where_it_is() {
    type Give = fn(&mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError>;
    let both = |ctx: &mut FeatureInstallContext<'_>| {
        let json = || Arc::new(AsJson(Arc::new(Plain)));
        ctx.services().provide_json(&A.id(), json())?;
        ctx.services().provide_json(&A.id(), json()).map(drop)
    };
    let undeclared = |ctx: &mut FeatureInstallContext<'_>| {
        ctx.services().provide(A, Arc::new(Plain))?;
        ctx.services()
            .provide_json(&A.id().of_instance("x"), Arc::new(AsJson(Arc::new(Plain))))
            .map(drop)
    };
    for (give, says) in [(both as Give, "staged twice"), (undeclared, "test.a.v1#x")] {
        let descriptor = declaring("builtin:a", &[])
            .provides(ServiceDeclaration::of(A, "1.0.0"))
            .build();
        let registry = install(vec![with(descriptor, give)]);
        let said = messages(&registry, "builtin:a");
        assert!(said.contains(says), "{said}");
    }
    let descriptor = declaring("builtin:b", &[])
        .requires(ServiceRequirement::required(A, "^1"))
        .build();
    let takes = with(descriptor, |ctx| {
        ctx.services().require_json(&A.id()).map(drop)
    });
    let registry = install(vec![provider("builtin:a", &[""]), takes]);
    let said = messages(&registry, "builtin:b");
    assert!(
        said.contains("builtin:a does not provide it as JSON"),
        "{said}"
    );
}

#[test]
fn instances_are_services_of_their_own_and_each_finds_all() {
    let found = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&found);
    let descriptor = declaring("builtin:c", &[])
        .requires(ServiceRequirement::each(A, "^1"))
        .build();
    let takes = with(descriptor, move |ctx| {
        for (name, handle) in ctx.services().each(A)? {
            let words = handle.with(|greeter| greeter.greet("you".into())).unwrap();
            kept.lock().unwrap().push((name, words));
        }
        Ok(())
    });
    let providers = vec![
        provider("builtin:a", &["", "one"]),
        provider("builtin:b", &["two"]),
    ];
    let registry = install([providers, vec![Arc::clone(&takes)]].concat());
    let all = [("", "none you"), ("one", "one you"), ("two", "two you")];
    let all: Vec<_> = all
        .iter()
        .map(|(name, words)| ((*name).to_owned(), (*words).to_owned()))
        .collect();
    assert_eq!(std::mem::take(&mut *found.lock().unwrap()), all);
    assert_eq!(
        registry.report().order.last(),
        Some(&id("builtin:c")),
        "after its providers"
    );
    // None is not missing.
    let registry = install(vec![takes]);
    assert_eq!(
        registry.report().feature(&id("builtin:c")).unwrap().outcome,
        InstallOutcome::Installed
    );
    assert!(found.lock().unwrap().is_empty());
}

#[test]
fn an_instance_has_one_provider_and_a_name_within_bounds() {
    let registry = install(vec![
        provider("builtin:a", &["one"]),
        provider("builtin:b", &["one"]),
    ]);
    let said = messages(&registry, "builtin:b");
    assert!(
        said.contains("service test.a.v1#one of builtin:b is provided by builtin:a"),
        "{said}"
    );
    let long = "a".repeat(65);
    for (name, fits) in [
        ("one-2", true),
        ("", false),
        ("One", false),
        ("a.b", false),
        (long.as_str(), false),
    ] {
        let declared = ServiceDeclaration::of(A, "1.0.0").instance(name);
        let problems = declaring("builtin:a", &[])
            .provides(declared)
            .build()
            .problems();
        assert_eq!(problems.is_empty(), fits, "{name}: {problems:?}");
    }
    let mut each = ServiceRequirement::each(A, "^1");
    each.need = Need::Required;
    assert!(
        declaring("builtin:a", &[])
            .requires(each)
            .build()
            .problems()
            .join("")
            .contains("is optional")
    );
}
