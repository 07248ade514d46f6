//! Slack and Fireflies and no other provider: which tools are there, and why the rest is not.
#![allow(clippy::unwrap_used, reason = "a rig that fails is a failed test")]

use api_core::tools::{CategoryTools, TABLE};
use api_fireflies::Fireflies;
use api_slack::Slack;
use pod::feature::FeatureModule;
use serde_json::json;
use testkit::{FeatureHost, ScriptedServer, ServerAnswer};

#[test]
fn chats_and_meetings_alone_leave_no_tools_of_other_categories() {
    let server = ScriptedServer::answering(|request| {
        let answer = match request.target.split('?').next()? {
            "/conversations.list" => json!({ "ok": true, "channels": [] }),
            "/graphql" => json!({ "data": { "transcripts": [] } }),
            _ => return None,
        };
        Some(ServerAnswer::json(200, &answer))
    });
    let settings =
        |secret: &str| json!({ "base_url": server.url(), "token": { "secret": secret } });
    let slack = Slack::new(serde_json::from_value(settings("slack")).unwrap()).unwrap();
    let fireflies = Fireflies::new(serde_json::from_value(settings("fireflies")).unwrap()).unwrap();
    let tools = CategoryTools::of(&[slack.descriptor(), fireflies.descriptor()]);
    let mut host = FeatureHost::new()
        .endpoint(&server.endpoint())
        .secret("slack", "xoxb-canary-1f2e3d4c")
        .secret("fireflies", "ff-canary-5b6a7988")
        .permit_all()
        .with(slack)
        .with(fireflies)
        .install(tools);
    let report = host.registry().report();
    let skipped: Vec<(String, String)> = report
        .features
        .iter()
        .flat_map(|feature| &feature.skipped_contributions)
        .map(|of| (of.name.clone(), of.reason.clone()))
        .collect();
    for row in TABLE {
        let is_served = matches!(row.category, "messenger" | "meeting-notes");
        let is_there = host.registry().tools().get(row.name).is_some();
        assert_eq!(is_there, is_served, "{}", row.name);
        let reason = skipped
            .iter()
            .find(|of| of.0 == row.name)
            .map(|of| of.1.as_str());
        let wanted = format!(
            "no installed feature serves its category `{}`",
            row.category
        );
        match is_served {
            true => assert_eq!(reason, None, "{}", row.name),
            false => assert!(reason.unwrap().contains(&wanted), "{reason:?}"),
        }
    }
    assert!(skipped.len() > 20);
    for tool in ["get_messenger_chats", "get_meeting_notes"] {
        let text = host.call(tool, json!({})).text();
        assert!(text.contains("\"items\":[]"), "{text}");
    }
    server.assert_done();
}
