//! `builtin:web`: Fetch, for pages of hosts that a person granted. Off until configured:
//! `[features."builtin:web"] enabled = true` and `grant = { network = ["docs.example.org"] }`.
//!
//! [`fetch`] gets an answer, `body` decides what it is, `page` makes text of HTML. What comes back was written by a
//! stranger. It is bounded in size and time, freed of what a terminal or a model would read and a person would not see,
//! and marked as data with the address it came from.

mod block;
mod body;
pub mod fetch;
mod page;

use fetch::{Args, Waits};
use pod::feature::{
    CapabilityRequest, FeatureDescriptor, FeatureId, FeatureInstallContext, FeatureInstallError, FeatureModule,
    HostCapability, ToolKey,
};
use std::sync::Arc;
use std::time::Duration;

/// This feature's id.
pub const ID: FeatureId = FeatureId::builtin("web");

const NETWORK: HostCapability = HostCapability::network("fetch");

/// A call ends by itself before.
const DEADLINE: Duration = Waits::USUAL.total.saturating_add(Duration::from_secs(10));

const FETCH: ToolKey<Args> =
    ToolKey::new(fetch::NAME, fetch::EFFECT, fetch::ABOUT).touching(fetch::touches).deadline(DEADLINE);

/// Reading pages.
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
