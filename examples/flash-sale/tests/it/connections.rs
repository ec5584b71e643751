//! Slow connections.

use std::time::Duration;

use flash_sale::http::Settings;
use flash_sale::limits::Limiting;
use flash_sale::sale::NewSale;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::open::{Open, generous};

/// A time longer than any header timeout here: a connection that is open after it stays open.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Returns the data that the shop sends until it closes the connection.
async fn until_closed(mut stream: TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    // A connection that is reset is closed as well.
    let closed = timeout(FOR_EVER, stream.read_to_end(&mut said)).await;
    let _ = closed.expect("the connection stays open");
    said
}

async fn send(shop: &Open, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(shop.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_connection_whose_head_does_not_come_is_closed() {
    let settings = Settings { header_timeout: Duration::from_millis(100), ..generous() };
    let shop = Open::alone(&NewSale::of(1), settings).await;
    for begun in ["", "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nhost: shop\r\nx-"] {
        assert_eq!(until_closed(send(&shop, begun).await).await, b"", "{begun:?}");
    }
}

#[tokio::test]
async fn a_request_that_waits_for_its_answer_is_not_closed() {
    let settings = Settings {
        header_timeout: Duration::from_millis(500),
        limiting: Limiting::Queue,
        queue: "1/h queue 9 leaky-bucket".parse().unwrap(),
        ..generous()
    };
    let shop = Open::alone(&NewSale::of(9), settings).await;
    assert_eq!(shop.buy("ana", "k").await.status, 200);
    let request =
        format!("POST {} HTTP/1.1\r\nhost: shop\r\nidempotency-key: k\r\n\r\n", shop.link("bob").await);
    let mut place = [0; 4096];
    let mut waiting = loop {
        let mut stream = send(&shop, &request).await;
        // If the machine sends it too late, the connection is closed without a reply, which proves nothing.
        if stream.read(&mut place).await.is_ok_and(|bytes| bytes > 0) {
            break stream;
        }
    };
    // This takes longer than the timeout.
    until_closed(send(&shop, "GET").await).await;
    let mut rest = Vec::new();
    while !String::from_utf8_lossy(&rest).contains("\"place\":1") {
        let more = timeout(FOR_EVER, waiting.read_buf(&mut rest)).await.expect("places are said");
        assert_ne!(more.unwrap(), 0, "{}", String::from_utf8_lossy(&rest));
    }
}
