//! The real shop on SQLite, as its binary serves it, and buyers without a browser.

use std::borrow::Cow;

use serde_json::Value;
use testbed::Folder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::family::Family;

/// A shop that is open to visitors on a free port.
pub(super) struct Stall {
    process: Family,
    _folder: Folder,
}

impl Stall {
    /// Starts `flash-sale serve` with a database of its own.
    pub(super) fn open(arguments: &[&str]) -> Stall {
        let folder = Folder::new("stall");
        let database = format!("sqlite:{}", folder.file("shop.db").display());
        let own = ["serve", "--listen", "127.0.0.1:0", "--database", &database];
        let arguments: Vec<String> = own.iter().chain(arguments).map(|&word| word.to_owned()).collect();
        let process = Family::start(env!("CARGO_BIN_EXE_shop"), &arguments, folder.file("log"));
        Stall { process, _folder: folder }
    }

    /// The buyers' page.
    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address())
    }

    /// The shopkeeper's page.
    pub(super) fn keeper(&self) -> String {
        let rest = self.process.word_after("/keeper?token=");
        format!("http://{}/keeper?token={rest}", self.address())
    }

    /// One more buyer, with a cookie of their own: the status and the body of the answer.
    pub(super) async fn buy(&self) -> (u16, String) {
        let (mut stream, request) = self.wish().await;
        let (status, _, body) = answer(&mut stream, &request).await;
        (status, body)
    }

    /// One more buyer, who stands in line for as long as the connection lives.
    pub(super) async fn stand_in_line(&self) -> TcpStream {
        let (mut stream, request) = self.wish().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        // The first line says the place; the very first buyer has none, and gets the outcome.
        let is_answered =
            |said: &[u8]| ["\"place\"", "\"status\""].iter().any(|word| text(said).contains(word));
        while !is_answered(&said) {
            assert_ne!(stream.read_buf(&mut said).await.unwrap(), 0, "{}", text(&said));
        }
        stream
    }

    /// A connection, and the request of a new visitor to buy.
    async fn wish(&self) -> (TcpStream, String) {
        let address = self.address();
        let connect = || async { TcpStream::connect(&address).await.unwrap() };
        let (_, head, _) = answer(&mut connect().await, &request("GET", "/", "")).await;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let cookie = format!("cookie: {}\r\n", cookie.split(';').next().unwrap());
        let (_, _, body) = answer(&mut connect().await, &request("POST", "/api/sales/1/link", &cookie)).await;
        let link: Value = serde_json::from_str(&body).unwrap();
        let url = link["url"].as_str().unwrap_or_else(|| panic!("a link was to be given: {body}"));
        (connect().await, request("POST", url, &format!("{cookie}idempotency-key: one\r\n")))
    }

    fn address(&self) -> String {
        let rest = self.process.word_after("http://");
        rest.split('/').next().unwrap_or_default().to_owned()
    }
}

fn request(method: &str, path: &str, fields: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: shop\r\ncontent-length: 0\r\nconnection: close\r\n{fields}\r\n"
    )
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Status, head and body of an answer, read to its end.
async fn answer(stream: &mut TcpStream, request: &str) -> (u16, String, String) {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}
