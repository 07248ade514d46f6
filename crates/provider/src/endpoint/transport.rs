//! How requests get to an endpoint: the grant, the proxy on the way, the certificates and the waits.

use authority::Net;
use http_client::{BaseUrl, HttpClient, Proxy, Timeouts, Tls};

/// What a connection to an endpoint needs.
#[derive(Clone, Debug)]
pub struct Transport {
    /// Must reach the proxy, or without one [`BaseUrl::host_port`].
    pub net: Net,
    pub proxy: Option<Proxy>,
    pub tls: Tls,
    pub timeouts: Timeouts,
}

impl Transport {
    /// Connects on the first request.
    pub(crate) fn client(self, base_url: BaseUrl) -> HttpClient {
        HttpClient::new(base_url, self.net, self.timeouts)
            .secured(self.tls)
            .through(self.proxy)
    }
}

#[cfg(test)]
impl Transport {
    /// Straight to an endpoint of `http`.
    pub(crate) fn plain(net: Net, timeouts: Timeouts) -> Self {
        Self {
            net,
            proxy: None,
            tls: Tls::default(),
            timeouts,
        }
    }
}
