//! Tests of examples/clients: each program of docs/clients.md beside a real server.
//!
//! ```text
//!   a client, at 127.0.0.N --HTTP--> example --RESP or HTTP--> tidegate serve: killed, stopped, full, started again
//!                                       '--> Proxy, which loses a reply --^
//! ```
//!
//! The page has the commands of each program. A test adds addresses, the token and the settings, and nothing else.
//! The server has the real clock. A check whose requests took longer than a refill is repeated with another client.

mod caller;
mod example;
mod keys;
mod law;
mod page;
mod place;

use example::{EXAMPLES, Example};

fn example(name: &str) -> &'static Example {
    EXAMPLES.iter().find(|example| example.name == name).unwrap_or_else(|| panic!("no example {name}"))
}

/// One test for each example.
macro_rules! examples {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            law::holds(example(stringify!($name)));
        })*

        #[test]
        fn every_example_has_a_test() {
            assert_eq!(EXAMPLES.map(|example| example.name), [$(stringify!($name)),*]);
        }
    };
}

examples! {
    python_wsgi
    python_fastapi
    node_http
    node_express
    go_goredis
    go_nethttp
    java_http_server
    java_servlet
    shell_redis_cli
    shell_curl
}
