//! An open shop on a free port, and its clients.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::ops::Index;
use std::time::Duration;

use axum::http::{HeaderMap, Method, Request};
use bytes::Bytes;
use flash_sale::database::Database;
use flash_sale::http::{self, App, Settings};
use flash_sale::link::Signer;
use flash_sale::sale::NewSale;
use flash_sale::shop::Shop;
use futures_util::future::join_all;
use harness::sale::Tally;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use testbed::AnyDatabase;

/// Returns a shop on a database, and the number of its sale.
pub(crate) async fn sale_on(database: &AnyDatabase, sale: &NewSale) -> (Shop, i64) {
    let shop = shop_on(database).await;
    let sale = shop.database.create_sale(sale).await.unwrap();
    (shop, sale)
}

/// Returns a shop on a database.
pub(crate) async fn shop_on(database: &AnyDatabase) -> Shop {
    Shop::new(Database::open(&database.url(), 20).await.unwrap())
}

/// A limit that no test reaches.
pub(crate) const PLENTY: &str = "100000/s burst 100000";

/// A request.
pub(crate) type TestRequest = Request<Full<Bytes>>;

/// An open shop with one sale.
pub(crate) struct Open {
    pub(crate) shop: Shop,
    pub(crate) signer: Signer,
    pub(crate) sale: i64,
    pub(crate) address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
    end: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
    /// The database, if no other shop uses it.
    _own: Option<AnyDatabase>,
}

/// A response. Its JSON can be indexed.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    json: Value,
}

impl Got {
    /// Returns the status and the result.
    pub(crate) fn said(&self) -> (u16, &str) {
        (self.status, self["result"].as_str().unwrap_or_default())
    }

    /// Returns a field of the JSON that is a text.
    pub(crate) fn text_of(&self, name: &str) -> &str {
        self[name].as_str().unwrap_or_else(|| panic!("{name}: {self:?}"))
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Index<&str> for Got {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        &self.json[name]
    }
}

/// Returns settings under which the limiter denies nothing.
pub(crate) fn generous() -> Settings {
    let rules = format!("[[rule]]\nname = \"all\"\nkey = [\"ip\"]\nlimit = \"{PLENTY}\"");
    Settings {
        rate: PLENTY.parse().unwrap(),
        per_address: NonZeroU16::MAX,
        rules: Some(tidegate_rules::Policy::from_toml(&rules).unwrap()),
        signer: Signer::new("a secret of the test"),
        ..Settings::default()
    }
}

impl Open {
    /// Opens a shop on this database, with a new sale.
    pub(crate) async fn on(running: &AnyDatabase, sale: &NewSale, settings: Settings) -> Open {
        let (shop, sale) = sale_on(running, sale).await;
        let signer = settings.signer.clone();
        let app = App::new(shop.clone(), settings).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel();
        let server = tokio::spawn(async move {
            let shutdown = async {
                let _ = ended.await;
            };
            http::serve(listener, app, shutdown).await.unwrap();
        });
        let client = Client::builder(TokioExecutor::new()).build_http();
        Open { shop, signer, sale, address, client, end: Some(end), server: Some(server), _own: None }
    }

    /// Opens a shop on a SQLite database of its own.
    pub(crate) async fn alone(sale: &NewSale, settings: Settings) -> Open {
        let running = AnyDatabase::sqlite();
        let open = Open::on(&running, sale, settings).await;
        Open { _own: Some(running), ..open }
    }

    /// Opens a shop on a SQLite database of its own, with the settings of [`generous`].
    pub(crate) async fn generous(sale: &NewSale) -> Open {
        Open::alone(sale, generous()).await
    }

    /// Returns a request, to be changed before it is sent.
    pub(crate) fn request(&self, method: Method, path: &str) -> TestRequest {
        let uri = format!("http://{}{path}", self.address);
        Request::builder().method(method).uri(uri).body(Full::default()).unwrap()
    }

    /// Returns the link by which this buyer buys, valid for a minute.
    pub(crate) async fn link(&self, user: &str) -> String {
        let until = self.shop.database.now().await.unwrap() + 60_000;
        self.signer.buy_url(self.sale, user, until)
    }

    /// Requests a link from the shop, as the page of this visitor does.
    pub(crate) async fn ask_for_link(&self, user: &str) -> Got {
        let request = self.request(Method::POST, &format!("/api/sales/{}/link", self.sale));
        self.send(with(request, "cookie", &self.cookie(user))).await
    }

    /// Returns the cookie of a visitor.
    pub(crate) fn cookie(&self, user: &str) -> String {
        format!("visitor={}", self.signer.visitor(user))
    }

    /// Returns a purchase request by a link.
    pub(crate) fn wish_by(&self, url: &str, key: &str) -> TestRequest {
        with(self.request(Method::POST, url), "idempotency-key", key)
    }

    /// Buys by a link of the shop.
    pub(crate) async fn buy_by(&self, url: &str, key: &str) -> Got {
        self.send(self.wish_by(url, key)).await
    }

    /// Returns the purchase request of a buyer, to be changed before it is sent.
    pub(crate) async fn wish(&self, user: &str, key: &str) -> TestRequest {
        self.wish_by(&self.link(user).await, key)
    }

    pub(crate) async fn buy(&self, user: &str, key: &str) -> Got {
        self.send(self.wish(user, key).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> Got {
        self.send(self.request(Method::GET, path)).await
    }

    /// Sends a `GET` with a cookie.
    pub(crate) async fn get_with(&self, path: &str, cookie: &str) -> Got {
        self.send(with(self.request(Method::GET, path), "cookie", cookie)).await
    }

    /// Returns the cookie that the shopkeeper gets for the token.
    pub(crate) async fn visit_of_the_keeper(&self) -> String {
        let first = self.get(&format!("/keeper?token={}", self.signer.keeper_token())).await;
        first.field("set-cookie").split(';').next().unwrap().to_owned()
    }

    pub(crate) async fn post(&self, path: &str) -> Got {
        self.send(self.request(Method::POST, path)).await
    }

    /// Sends a request, and reads the response to its end.
    pub(crate) async fn send(&self, request: TestRequest) -> Got {
        let (head, body) = self.begin(request).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let json = serde_json::from_str(&text).unwrap_or_default();
        Got { status: head.status.as_u16(), headers: head.headers, text, json }
    }

    /// Sends a request, and leaves the body of the response to be read; dropping it closes the connection.
    pub(crate) async fn begin(&self, request: TestRequest) -> axum::http::Response<Incoming> {
        self.client.request(request).await.unwrap()
    }

    pub(crate) async fn tally(&self) -> Tally {
        self.shop.database.tally(self.sale).await.unwrap().unwrap()
    }

    /// Returns the numbers of the shopkeeper's page.
    pub(crate) async fn numbers(&self) -> Got {
        self.get(&format!("/api/keeper/numbers?token={}", self.signer.keeper_token())).await
    }

    /// Returns these counters of the shopkeeper's page.
    pub(crate) async fn totals<const N: usize>(&self, names: [&str; N]) -> [i64; N] {
        let numbers = self.numbers().await;
        names.map(|name| numbers["totals"][name].as_i64().unwrap_or_else(|| panic!("{name}: {numbers:?}")))
    }

    /// Checks that the books violate no invariant.
    pub(crate) async fn audit(&self) {
        assert_eq!(self.shop.database.audit().await.unwrap(), []);
    }

    /// Waits until the page shows this remaining stock.
    pub(crate) async fn until_left(&self, left: i64) {
        eventually("the stock last seen", async || self.get("/api/sale").await["left"] == left).await;
    }

    /// Starts the shutdown of the shop.
    pub(crate) fn end(&mut self) {
        let _ = self.end.take().unwrap().send(());
    }

    /// Waits for the end of the shutdown.
    pub(crate) async fn ended(&mut self) {
        self.server.take().unwrap().await.unwrap();
    }
}

/// Returns the same request with a header field.
pub(crate) fn with(mut request: TestRequest, name: &'static str, value: &str) -> TestRequest {
    request.headers_mut().insert(name, value.parse().unwrap());
    request
}

/// Returns the same request from another address, which a proxy on this machine reports.
pub(crate) fn from(address: &str, request: TestRequest) -> TestRequest {
    with(request, "x-forwarded-for", address)
}

/// Runs this many tasks at once, and returns their results.
pub(crate) async fn at_once<F>(tasks: usize, task: impl Fn(usize) -> F) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let results = join_all((0..tasks).map(|number| tokio::spawn(task(number)))).await;
    results.into_iter().map(Result::unwrap).collect()
}

/// Polls until the condition is true.
pub(crate) async fn eventually(what: &str, mut look: impl AsyncFnMut() -> bool) {
    const SOON: Duration = Duration::from_secs(60);
    let started = testbed::now();
    while !look().await {
        assert!(started.elapsed() < SOON, "{what}: not within {SOON:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
