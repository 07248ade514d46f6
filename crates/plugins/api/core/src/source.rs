//! The feature of a provider: what all of them do alike, from settings to services. A provider is a [`SourceProvider`]; its feature
//! is a [`ProviderFeature`] of it.

use crate::category;
use crate::http::{self, BaseUrl, Http, Token, TokenForm, TokenSetting, Vendor};
use crate::provider::Answer;
use crate::values::{AskValues, ProjectValues, Values, within};
use crate::{ServiceFault, unfit};
use authority::{Net, Secret};
use pod::feature::{
    CapabilityRequest, EnrichKey, FeatureDescriptor, FeatureId, FeatureInstallContext,
    FeatureInstallError, FeatureModule, HostCapability, ServiceKey,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The enricher of each provider: it sets the choices of the tools of all categories.
const VALUES: EnrichKey = EnrichKey::new("project-values", &["*"]);

/// What is known of a provider before its settings.
pub struct ProviderAbout {
    pub id: FeatureId,
    /// For people, such as `GitHub`.
    pub name: &'static str,
    /// The name of its services, and the value of `provider`: 1 to 64 of `[a-z0-9-]`.
    pub instance: &'static str,
    pub categories: &'static [&'static str],
    pub vendor: &'static Vendor,
    /// Hosts of the internet beside that of the base URL, which get no token, and what they are for.
    pub other_hosts: &'static [Cow<'static, str>],
    pub why_other_hosts: &'static str,
}

/// Where a provider is and who asks, from its settings.
pub struct ProviderOrigin {
    pub base_url: String,
    pub token: Option<TokenSetting>,
    pub form: TokenForm,
}

/// One vendor: implemented once in its crate, by the type that lives while a pod runs.
pub trait SourceProvider: Sized + Send + Sync + 'static {
    /// What is known of it without settings.
    const ABOUT: ProviderAbout;

    /// The settings below `[features."builtin:NAME"]`; all of them must have defaults.
    type Settings: DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static;

    /// Reads the settings.
    ///
    /// # Errors
    /// A setting is missing or has no valid value; the text names its key.
    fn origin(settings: &Self::Settings) -> Result<ProviderOrigin, String>;

    /// The provider, with the way to the vendor.
    fn new(settings: &Self::Settings, http: Http) -> Self;

    /// Stages each service of its categories.
    ///
    /// # Errors
    /// Those of [`Stage::provide`].
    fn stage(live: &Arc<Self>, to: &mut Stage<'_, '_>) -> Result<(), FeatureInstallError>;

    /// The values of the project, for the schemas of the tools.
    fn values(&self) -> Answer<'_, Values> {
        Box::pin(std::future::ready(Ok(Values::new())))
    }

    /// Lines for a person: who the token is, what it may do, what is missing.
    fn check(&self) -> Answer<'_, Vec<String>>;
}

/// Stages the services of a provider.
pub struct Stage<'a, 'b> {
    ctx: &'a mut FeatureInstallContext<'b>,
    instance: &'static str,
}

impl Stage<'_, '_> {
    /// Stages one service.
    ///
    /// # Errors
    /// It does not belong to a category of the provider, or was staged before.
    pub fn provide<T: ?Sized + Send + Sync + 'static>(
        &mut self,
        key: ServiceKey<T>,
        live: Arc<T>,
    ) -> Result<(), FeatureInstallError> {
        let mut services = self.ctx.services();
        services
            .provide_instance(key, self.instance, live)
            .map(drop)
    }
}

/// The feature of a provider.
pub struct ProviderFeature<P: SourceProvider> {
    settings: P::Settings,
    base: BaseUrl,
    token: Option<TokenSetting>,
    form: TokenForm,
}

impl<P: SourceProvider> Clone for ProviderFeature<P> {
    fn clone(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            base: self.base.clone(),
            token: self.token.clone(),
            form: self.form.clone(),
        }
    }
}

impl<P: SourceProvider> ProviderFeature<P> {
    /// Creates the feature with these settings.
    ///
    /// # Errors
    /// A setting is missing or has no valid value; the text names its key.
    pub fn new(settings: P::Settings) -> Result<Self, String> {
        let ProviderOrigin {
            base_url,
            token,
            form,
        } = P::origin(&settings)?;
        let base = BaseUrl::parse(&base_url).map_err(|error| format!("`base_url`: {error}"))?;
        if !base.is_tls() && base.is_public() {
            return Err("`base_url` must begin with https://".to_owned());
        }
        Ok(Self {
            settings,
            base,
            token,
            form,
        })
    }

    /// The descriptor without settings, for plans in which the feature is off.
    #[must_use]
    pub fn declared() -> FeatureDescriptor {
        let about = P::ABOUT;
        let builder = FeatureDescriptor::builder(about.id)
            .display_name(about.name)
            .version(env!("CARGO_PKG_VERSION"))
            .settings::<P::Settings>()
            .enriches(&VALUES);
        category::declare(builder, about.instance, about.categories).build()
    }

    /// The provider over this part of the network.
    #[must_use]
    pub fn live(&self, net: Net, secret: Option<Secret>) -> P {
        let form = self.form.clone();
        let token = secret.map(|secret| Token { secret, form });
        let http = Http::new(P::ABOUT.vendor, self.base.clone(), net, token);
        P::new(&self.settings, http)
    }

    /// Asks for the values of the project, over a connection of its own.
    fn ask_values(&self, net: Net, secret: Option<Secret>) -> AskValues {
        let source = self.clone();
        Box::new(move || {
            let live = source.live(net.clone(), secret.clone());
            Box::pin(async move { live.values().await })
        })
    }
}

/// How long a check may take.
const CHECK_LIMIT: Duration = Duration::from_secs(10);

/// A provider with its settings, as a person checks it.
pub trait CheckedSource: Send + Sync {
    /// The vendor.
    fn name(&self) -> &'static str;

    /// Where the API is.
    fn base(&self) -> &BaseUrl;

    /// The name of the secret with the token.
    fn secret(&self) -> Option<&str>;

    /// Asks the vendor, and waits on this thread: lines for a person.
    ///
    /// # Errors
    /// Why it does not work, with the next step.
    fn check(&self, net: Net, secret: Option<Secret>) -> Result<Vec<String>, String>;
}

impl<P: SourceProvider> CheckedSource for ProviderFeature<P> {
    fn name(&self) -> &'static str {
        P::ABOUT.name
    }

    fn base(&self) -> &BaseUrl {
        &self.base
    }

    fn secret(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.secret.as_str())
    }

    fn check(&self, net: Net, secret: Option<Secret>) -> Result<Vec<String>, String> {
        let live = self.live(net, secret);
        within(CHECK_LIMIT, live.check())
    }
}

impl<P: SourceProvider> FeatureModule for ProviderFeature<P> {
    fn descriptor(&self) -> FeatureDescriptor {
        let about = P::ABOUT;
        let mut descriptor = Self::declared();
        let requests = &mut descriptor.requested_capabilities;
        let why = format!("the API of {}, at `base_url`", about.name);
        requests.push(CapabilityRequest::required(
            http::reach(&self.base, about.instance),
            why,
        ));
        if self.base.is_public() && !about.other_hosts.is_empty() {
            let hosts = HostCapability::Network {
                purpose: about.instance.into(),
                hosts: about.other_hosts.into(),
            };
            requests.push(CapabilityRequest::optional(hosts, about.why_other_hosts));
        }
        if let Some(id) = self.secret() {
            let secret = HostCapability::SecretRef {
                id: id.to_owned().into(),
                hosts: Cow::Borrowed(&[]),
            };
            requests.push(CapabilityRequest::required(
                secret,
                "the token, as `token` names it",
            ));
        }
        descriptor
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let net = http::net(ctx, &self.base)?;
        let secret = self.secret().map(|id| ctx.services().secret(id));
        let secret = secret.transpose()?;
        // Nothing is asked where a plan is only shown.
        let ask: AskValues = match ctx.pod_name() {
            Some(_) => self.ask_values(net.clone(), secret.clone()),
            None => Box::new(|| Box::pin(std::future::ready(Ok(Values::new())))),
        };
        let values = ProjectValues::new(P::ABOUT.categories, ask);
        ctx.tools().enrich(&VALUES, Arc::new(values))?;
        let live = Arc::new(self.live(net, secret));
        let instance = P::ABOUT.instance;
        P::stage(&live, &mut Stage { ctx, instance })
    }
}

/// Checks the argument `projectKey` of a provider that has one project.
///
/// # Errors
/// It names another one.
pub fn only_project(own: &str, named: Option<&str>) -> Result<(), ServiceFault> {
    match named.filter(|other| !other.is_empty() && !other.eq_ignore_ascii_case(own)) {
        Some(_) => Err(unfit(format!("`projectKey`: only {own} is configured"))),
        None => Ok(()),
    }
}

/// Whether a text can stand in a path as a name of an owner, a repository or the like: 1 to 100 of `[A-Za-z0-9_.-]`, not
/// beginning with a dot.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=100).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('.')
}
