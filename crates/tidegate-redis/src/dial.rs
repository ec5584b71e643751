//! Connections to a server: address, credentials, encryption.
//!
//! Connections use RESP3, because push messages report lost connections and flushes of all data. `TCP_NODELAY` is set.
//! Replies have no timeout of the driver: each caller has its own deadline.

use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo as _, ProtocolVersion,
    RedisConnectionInfo, RedisError, TlsCertificates,
};

use crate::options::Options;
use crate::url::{Address, Url};

/// The timeout for the connection and the authentication. It is independent of the deadline of decisions, because
/// connections are opened in the background.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of requests queued for writing on one connection.
const WRITE_QUEUE: usize = 1024;

/// The connector for the servers of one URL.
#[derive(Debug)]
pub(crate) struct Dialer {
    /// Protocol, credentials and database, sent when a connection opens.
    settings: RedisConnectionInfo,
    /// True if connections use TLS.
    is_encrypted: bool,
    /// The root and client certificates; empty without TLS.
    certificates: TlsCertificates,
}

impl Dialer {
    /// Creates a connector with the credentials and the database of the URL.
    pub(crate) fn new(options: &Options) -> Dialer {
        let Url { user, password, database, .. } = &options.url;
        Dialer::with(options, (user.as_deref(), password.as_deref()), *database)
    }

    /// Creates a connector for Sentinels, which have their own credentials and no databases.
    pub(crate) fn for_sentinels(options: &Options) -> Dialer {
        let (user, password) = &options.sentinel_credentials;
        Dialer::with(options, (user.as_deref(), password.as_deref()), 0)
    }

    /// Creates a connector with these credentials.
    fn with(options: &Options, (user, password): (Option<&str>, Option<&str>), database: u32) -> Dialer {
        let mut settings = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name()
            .set_db(i64::from(database));
        if let Some(user) = user {
            settings = settings.set_username(user);
        }
        if let Some(password) = password {
            settings = settings.set_password(password);
        }
        let is_encrypted = options.url.is_encrypted;
        if is_encrypted {
            choose_cryptography();
        }
        let client_tls = options
            .client_certificate
            .clone()
            .map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
        let certificates = TlsCertificates { client_tls, root_cert: options.root_certificate.clone() };
        Dialer { settings, is_encrypted, certificates }
    }

    /// Checks that the certificate and its key are valid.
    pub(crate) fn check(&self, address: &Address) -> Result<(), RedisError> {
        self.client(address).map(|_| ())
    }

    /// Connects to a server and authenticates.
    ///
    /// `hears` receives push messages: disconnections, invalidations and published messages. It runs on the connection
    /// thread and must not block. Fails after [`CONNECT_TIMEOUT`].
    pub(crate) async fn connect(
        &self,
        address: &Address,
        hears: impl AsyncPushSender,
    ) -> Result<MultiplexedConnection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(WRITE_QUEUE)
            .set_push_sender(hears);
        self.client(address)?.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Creates the driver's client for one address. Nothing is sent yet; an invalid certificate fails here.
    fn client(&self, address: &Address) -> Result<Client, RedisError> {
        let (host, port) = (address.host.clone(), address.port);
        // Host names are verified against the certificate; there is no option to skip that.
        let place = if self.is_encrypted {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        };
        let information = place
            .into_connection_info()?
            .set_tcp_settings(TcpSettings::default().set_nodelay(true))
            .set_redis_settings(self.settings.clone());
        if self.is_encrypted {
            Client::build_with_tls(information, self.certificates.clone())
        } else {
            Client::open(information)
        }
    }
}

/// Installs a default cryptography provider, unless the program has chosen one.
fn choose_cryptography() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may install one at the same time; either choice is valid.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
