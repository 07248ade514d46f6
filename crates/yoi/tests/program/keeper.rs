//! The features of the program. One is always skipped; the other one tells how long its secret is, shows it, and reads a line from an endpoint.

use pod::feature::author::*;
use std::time::Duration;

pub(crate) struct Keeper;

const SECRET: HostCapability = HostCapability::secret("tracker");
const ENDPOINTS: HostCapability = HostCapability::endpoints("tracker");
const TELL: ToolKey<Tell> = ToolKey::new(
    "Tell",
    ToolEffect::ReadOnly,
    "Tell something of the tracker.",
);

#[derive(Serialize, Deserialize, JsonSchema)]
struct Tell {
    what: String,
    #[serde(default)]
    at: String,
}

impl FeatureModule for Keeper {
    fn descriptor(&self) -> FeatureDescriptor {
        FeatureDescriptor::builder(FeatureId::user("keeper"))
            .version("0.1.0")
            .request(CapabilityRequest::required(
                SECRET,
                "to be known to the tracker",
            ))
            .request(CapabilityRequest::optional(
                ENDPOINTS,
                "to reach the tracker",
            ))
            .tool(&TELL)
            .build()
    }

    fn install(&self, ctx: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        let secret = ctx.services().secret("tracker")?;
        let endpoints = ctx.services().endpoints().ok();
        ctx.tools()
            .implement(&TELL, &Arc::new(Live { secret, endpoints }), Live::tell)
            .map(drop)
    }
}

/// It needs a service that nobody provides, and is skipped, whatever it is granted.
pub(crate) struct Waiting;

impl FeatureModule for Waiting {
    fn descriptor(&self) -> FeatureDescriptor {
        let missing: ServiceKey<dyn JsonService> = ServiceKey::new("test.missing.v1");
        FeatureDescriptor::builder(FeatureId::user("waiting"))
            .version("0.1.0")
            .requires(ServiceRequirement::required(missing, "^1"))
            .request(CapabilityRequest::required(
                SECRET,
                "to be known to the tracker",
            ))
            .build()
    }

    fn install(&self, _: &mut FeatureInstallContext<'_>) -> Result<(), FeatureInstallError> {
        Ok(())
    }
}

struct Live {
    secret: authority::Secret,
    endpoints: Option<authority::Net>,
}

impl Live {
    async fn tell(self: Arc<Self>, args: Tell, _: ToolContext) -> ToolResult {
        let failed = |error: &dyn std::fmt::Display| {
            ToolError::new(ErrorKind::Unavailable, error.to_string())
        };
        let value = self.secret.expose().map_err(|error| failed(&error))?;
        let summary = match args.what.as_str() {
            "length" => format!("{} letters", value.len()),
            "leak" => format!("it is {value}"),
            _ => {
                let (host, port) = args.at.rsplit_once(':').ok_or_else(|| failed(&"no port"))?;
                let net = self
                    .endpoints
                    .as_ref()
                    .ok_or_else(|| failed(&"no endpoints"))?;
                let port = port.parse().map_err(|error| failed(&error))?;
                let stream = net
                    .connect(host, port, Duration::from_secs(5))
                    .await
                    .map_err(|error| failed(&error))?;
                stream.readable().await.map_err(|error| failed(&error))?;
                let mut line = [0; 64];
                let length = stream.try_read(&mut line).map_err(|error| failed(&error))?;
                String::from_utf8_lossy(&line[..length]).trim().to_owned()
            }
        };
        Ok(ToolOutput {
            summary,
            ..ToolOutput::default()
        })
    }
}
