//! How requests reach the server: as kube sends them, but at once.
//!
//! kube leaves Nagle's algorithm on, so that the first request of every connection waits for the server to acknowledge
//! the end of the handshake, which it puts off for 40 ms.

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Body, ClientBuilder, ConfigExt};
use tower::BoxError;
use tower::util::{MapErrLayer, option_layer};
use tower_http::decompression::DecompressionLayer;

/// A client that has connected to nothing yet. Retries are not its own.
///
/// # Errors
/// The credentials or certificates of `config` cannot be used.
pub(crate) fn client(config: Config) -> Result<kube::Client, kube::Error> {
    if config.proxy_url.is_some() {
        return kube::Client::try_from(config);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let client: Client<_, Body> = Client::builder(TokioExecutor::new()).build(connector);
    let compression = DecompressionLayer::new().gzip(!config.disable_compression);
    // The last layer is the first that a request goes through.
    Ok(ClientBuilder::new(client, config.default_namespace.clone())
        .with_layer(&MapErrLayer::new(BoxError::from))
        .with_layer(&config.extra_headers_layer()?)
        .with_layer(&option_layer(config.auth_layer()?))
        .with_layer(&compression)
        .with_layer(&config.base_uri_layer())
        .build())
}
