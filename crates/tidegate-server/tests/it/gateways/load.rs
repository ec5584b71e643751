//! Many requests through nginx: every verdict is that of the model, and the time of a subrequest is printed.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use tidegate_rules::Policy;
use tidegate_server::Settings;
use tidegate_server::settings::Token;

use super::place::{Place, TOKEN, blocks};
use super::{nginx, send};
use crate::wire::http::Talk;
use crate::wire::{Running, settings};

/// Requests of all connections together.
const REQUESTS: usize = 10_000;
const CONNECTIONS: usize = 50;
/// Keys that the connections share.
const KEYS: usize = 20;
/// Requests that each key may make. The clock of the server stands still.
const LIMIT: usize = 300;

const RULES: &str = "[[rule]]\nname = 'key'\nkey = ['header.x-key']\nlimit = '300/h burst 300'\n";

/// Sends all requests, and returns the statuses of each key, and the times of the requests.
fn send_all(gateway: SocketAddr, path: &str) -> (Vec<[usize; 2]>, Vec<Duration>) {
    let each = |connection: usize| {
        let mut talk = Talk::at(gateway);
        let (mut counts, mut times) = (vec![[0; 2]; KEYS], Vec::new());
        for nth in 0..REQUESTS / CONNECTIONS {
            let key = (connection + nth) % KEYS;
            let begin = testbed::now();
            let answer = send(&mut talk, "GET", path, &[&format!("X-Key: {key}")]);
            times.push(begin.elapsed());
            match answer.status {
                200 => counts[key][0] += 1,
                429 => counts[key][1] += 1,
                _ => panic!("{answer:?}"),
            }
        }
        (counts, times)
    };
    let (mut counts, mut times) = (vec![[0; 2]; KEYS], Vec::new());
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..CONNECTIONS).map(|connection| scope.spawn(move || each(connection))).collect();
        for thread in threads {
            let (of_one, more) = thread.join().expect("no connection fails");
            times.extend(more);
            for (all, one) in counts.iter_mut().zip(of_one) {
                *all = [all[0] + one[0], all[1] + one[1]];
            }
        }
    });
    times.sort_unstable();
    (counts, times)
}

#[test]
fn ten_thousand_requests_over_fifty_connections_are_decided_as_the_model_says() {
    let policy = Policy::from_toml(RULES).unwrap_or_else(|error| panic!("{error}"));
    let running = Running::with(Settings { policy, token: Token::new(TOKEN), ..settings() });
    let mut place = Place::before(running, "load");
    let tidegate = place.tidegate();
    // The same service without the call, for comparison.
    let app = place.app.address();
    let plain = format!("    location /plain {{\n        proxy_pass http://{app};\n    }}\n");
    let site = blocks("nginx")[0];
    let end = site.rfind('}').expect("a server ends");
    nginx::start(&mut place, &format!("{}{plain}{}", &site[..end], &site[end..]), tidegate);

    let (_, plain) = send_all(place.address(), "/plain");
    let (counts, asked) = send_all(place.address(), "/");
    let of_key = REQUESTS / KEYS;
    assert_eq!(counts, vec![[LIMIT, of_key - LIMIT]; KEYS]);
    let at = |times: &[Duration], percent: usize| times[times.len() * percent / 100];
    for percent in [50, 99] {
        let (plain, asked) = (at(&plain, percent), at(&asked, percent));
        println!(
            "p{percent}: {plain:?} without the call, {asked:?} with it, {:?} more",
            asked.saturating_sub(plain)
        );
    }
}
