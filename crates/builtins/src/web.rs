//! `builtin:web`: Fetch, for pages of hosts that a person granted. Off until configured:
//! `[features."builtin:web"] enabled = true` and `grant = { network = ["docs.example.org"] }`.
//!
//! [`fetch`] gets a response, `body` determines its kind, `page` converts HTML to text. The text is untrusted: it is
//! limited in size and time, stripped of characters that a person would not see, and marked as data with its URL.

mod block;
mod body;
pub mod fetch;
mod page;

use fetch::{Args, Waits};
use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError,
    FeatureModule, HostCapability, ToolKey,
};
use std::sync::Arc;
use std::time::Duration;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("web");

const NETWORK: HostCapability = HostCapability::network("fetch");

/// A call ends by its own timeouts before this deadline.
const DEADLINE: Duration = Waits::USUAL.total.saturating_add(Duration::from_secs(10));

const FETCH: ToolKey<Args> = ToolKey::new(fetch::NAME, fetch::EFFECT, fetch::ABOUT)
    .touching(fetch::touches)
    .deadline(DEADLINE);

/// The feature that adds the tool to fetch web pages of granted hosts.
#[derive(Debug)]
pub struct Pages;

pub(crate) fn declared() -> FeatureDescriptor {
    let why = "read pages of the hosts you name: grant = { network = [\"docs.example.org\"] }";
    FeatureDescriptor::builder(ID)
        .display_name("Web pages")
        .version(env!("CARGO_PKG_VERSION"))
        .request(CapabilityRequest::required(NETWORK, why))
        .tool(&FETCH)
        .build()
}

impl FeatureModule for Pages {
    fn descriptor(&self) -> FeatureDescriptor {
        declared()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let web = Arc::new(fetch::Web::new(ctx.services().network()?, Waits::USUAL));
        ctx.tools().implement(&FETCH, &web, fetch::run).map(drop)
    }
}
