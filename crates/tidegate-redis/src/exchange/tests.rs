//! Tests that calls which wait for a server leave in their order.

use std::sync::LazyLock;

use redis::Value;
use testbed::{Cluster, Flavour, Redis};

use super::*;
use crate::dial::Dialer;
use crate::link::LinkContext;
use crate::options::Options;

/// The number of calls that wait at the same time.
const CALLS: usize = 64;

/// A script that shows the order in which the server runs calls.
static APPEND: LazyLock<Script> = LazyLock::new(|| {
    let text = "return redis.call('RPUSH', KEYS[1], ARGV[1])".to_owned();
    let sha = sha1_smol::Sha1::from(&text).digest().to_string();
    Script { text, sha }
});

/// Sends many calls before the server is reached, and returns the position of each in the list on the server.
fn positions(url: &str) -> Vec<Value> {
    let options = Options::new(url.parse().expect("a URL")).deadline(Duration::from_secs(5));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let trunk = Arc::new(LinkContext {
            dialer: Dialer::new(&options),
            counts: Arc::default(),
            handle: tokio::runtime::Handle::current(),
            deadline: options.deadline,
            doubts: tokio::sync::Notify::new(),
        });
        let topology = Topology::new(&options, &trunk);
        let exchange = Arc::new(Exchange::new(topology, Arc::default(), options.deadline, CALLS));
        // Each call is a task, as in the store. All are polled before the runtime looks at a socket that has an answer.
        let calls: Vec<_> = (0..CALLS).map(|number| tokio::spawn(append(exchange.clone(), number))).collect();
        let mut positions = Vec::new();
        for call in calls {
            positions.push(call.await.expect("no panic"));
        }
        positions
    })
}

async fn append(exchange: Arc<Exchange>, number: usize) -> Value {
    let (keys, arguments) = (vec![Arc::from(&b"order"[..])], vec![number.to_string().into_bytes()]);
    let question = Question::Run(Arc::new(Call { script: &APPEND, keys, arguments }));
    exchange.ask_beside(&question).await.expect("the server answers").value
}

fn in_order() -> Vec<Value> {
    (1..=CALLS).map(|position| Value::Int(i64::try_from(position).expect("it is small"))).collect()
}

/// Regression: a `watch` channel wakes its waiters in any order, and calls were sent in that order.
#[test]
fn calls_that_wait_for_a_connection_leave_in_their_order() {
    let redis = Redis::start(Flavour::Redis7);
    for _ in 0..10 {
        redis.command(&["DEL", "order"]);
        assert_eq!(positions(&redis.url()), in_order());
    }
}

#[test]
fn calls_that_wait_for_the_slots_of_a_cluster_leave_in_their_order() {
    let cluster = Cluster::start(Flavour::Redis7);
    let nodes: Vec<_> = cluster.addresses().iter().map(ToString::to_string).collect();
    for _ in 0..10 {
        cluster.primary_of(cluster.slot_of("order")).command(&["DEL", "order"]);
        assert_eq!(positions(&format!("redis+cluster://{}", nodes.join(","))), in_order());
    }
}
