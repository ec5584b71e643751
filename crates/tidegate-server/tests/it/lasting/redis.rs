//! Tests of overrides in a Redis that is away, loses its data, or has something else in it.

use super::place::{Node, redis, store};

#[test]
fn while_redis_is_away_overrides_stay_in_force_and_changes_fail() {
    let redis = redis();
    let [mut one, mut other] = ["away_a", "away_b"].map(|name| Node::start(name, &store(&redis)));
    assert_eq!(one.put("eve", "deny").status, 200);
    other.wait_for_users(&["eve"]);
    redis.command(&["SAVE"]);
    redis.kill();
    for node in [&mut one, &mut other] {
        node.wait_until_wrong("the store is not available");
        assert_eq!(node.admit("eve").status, 403);
        let refused = node.put("bob", "deny");
        assert_eq!(refused.status, 503, "{refused:?}");
        assert!(refused.detail().contains("overrides in redis://"), "{refused:?}");
        assert_eq!(node.delete("eve").status, 503);
        assert_eq!((node.users(), node.admit("bob").status), (vec!["eve".to_owned()], 200));
    }
    redis.restart();
    for node in [&mut one, &mut other] {
        node.wait_until_right();
        assert_eq!((node.users(), node.admit("eve").status), (vec!["eve".to_owned()], 403));
    }
    testbed::until("a change", super::place::TIMEOUT, || {
        (one.put("bob", "deny").status == 200).then_some(())
    });
    other.wait_for_users(&["bob", "eve"]);
}

#[test]
fn a_redis_that_has_lost_its_data_is_reported_and_takes_new_overrides() {
    let redis = redis();
    let mut node = Node::start("lost", &store(&redis));
    assert_eq!(node.put("eve", "deny").status, 200);
    // The version that is there has been read back.
    let mut other = Node::start("lost_other", &store(&redis));
    other.wait_for_users(&["eve"]);
    redis.command(&["FLUSHALL"]);
    other.wait_for_users(&[]);
    assert!(other.process.says("warning: ").contains("has lost its overrides; 1 ended here. Put them again"));
    assert_eq!(other.put("ana", "deny").status, 200);
    node.wait_for_users(&["ana"]);
}

#[test]
fn a_table_that_was_lost_and_begun_anew_between_two_looks_is_reported() {
    let redis = redis();
    let mut node = Node::start("anew", &store(&redis));
    for user in ["eve", "bob"] {
        assert_eq!(node.put(user, "deny").status, 200);
    }
    let mut other = Node::start("anew_other", &store(&redis));
    other.wait_for_users(&["bob", "eve"]);
    let anew = "redis.call('DEL', KEYS[1]) \
                return redis.call('HSET', KEYS[1], 'version', '9000000000000000', 'epoch', '9000000000000000')";
    redis.command(&["EVAL", anew, "1", "tg:overrides"]);
    for node in [&mut node, &mut other] {
        assert!(
            node.process.says("warning: ").contains("has lost its overrides; 2 ended here. Put them again")
        );
        node.wait_for_users(&[]);
    }
    // A change reads it first, or a look.
    assert_eq!(node.put("eve", "deny").status, 200);
    other.wait_for_users(&["eve"]);
    redis.command(&["FLUSHALL"]);
    assert_eq!(other.put("ana", "deny").status, 200);
    for node in [&mut node, &mut other] {
        assert!(node.process.says("warning: ").contains("has lost its overrides; 1 ended here"));
        node.wait_for_users(&["ana"]);
    }
}

#[test]
fn a_table_that_goes_back_to_an_older_version_is_reported() {
    let redis = redis();
    let mut node = Node::start("back", &store(&redis));
    assert_eq!(node.put("eve", "deny").status, 200);
    redis.command(&["COPY", "tg:overrides", "copied"]);
    assert_eq!(node.put("bob", "deny").status, 200);
    // Before or after the next look of this server.
    redis.command(&["COPY", "copied", "tg:overrides", "REPLACE"]);
    let said = node.process.says("warning: ");
    assert!(said.contains("has an older version of the overrides than before"), "{said}");
    assert!(said.contains("1 ended or changed here"), "{said}");
    node.wait_for_users(&["eve"]);
    assert_eq!(node.put("ana", "deny").status, 200);
    node.wait_for_users(&["ana", "eve"]);
}

#[test]
fn a_table_that_is_broken_leaves_what_is_in_force() {
    let redis = redis();
    let mut node = Node::start("table", &store(&redis));
    assert_eq!(node.put("eve", "deny").status, 200);
    redis.command(&["HSET", "tg:overrides", "3:api4:user3:bob", "{", "version", "9000000000000000"]);
    node.wait_until_wrong("delete that field of the hash by hand");
    assert_eq!((node.admit("eve").status, node.put("ana", "deny").status), (403, 503));
    redis.command(&["HDEL", "tg:overrides", "3:api4:user3:bob"]);
    node.wait_until_right();
    assert_eq!(node.put("ana", "deny").status, 200);
    let fields = redis.command(&["HKEYS", "tg:overrides"]);
    assert!(fields.contains("3:api4:user3:ana") && fields.contains("3:api4:user3:eve"), "{fields}");
    assert_eq!(redis.command(&["TTL", "tg:overrides"]).trim(), "-1");
}
