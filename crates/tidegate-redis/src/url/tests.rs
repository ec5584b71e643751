use super::*;

fn url(text: &str) -> Url {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn wrong(text: &str) -> String {
    text.parse::<Url>().expect_err(text).to_string()
}

#[test]
fn every_kind_of_place_is_read() {
    let one = url("redis://cache.example/3");
    assert_eq!(one.place, Deployment::Standalone(Address { host: "cache.example".into(), port: 6379 }));
    assert_eq!((one.database, one.is_encrypted, one.user, one.password), (3, false, None, None));

    let sentinel = url("rediss+sentinel://tide:s%40cret@a:1,[::1]:2,c/shop/1");
    assert_eq!((sentinel.user.as_deref(), sentinel.password.as_deref()), (Some("tide"), Some("s@cret")));
    assert!(sentinel.is_encrypted);
    let Deployment::Sentinel { sentinels, service } = &sentinel.place else { panic!("{sentinel:?}") };
    assert_eq!((service.as_str(), sentinel.database), ("shop", 1));
    assert_eq!(sentinels.iter().map(Address::to_string).collect::<Vec<_>>(), ["a:1", "[::1]:2", "c:26379"]);

    let cluster = url("redis+cluster://:secret@10.0.0.1:7000,10.0.0.2:7001");
    assert!(matches!(&cluster.place, Deployment::Cluster(nodes) if nodes.len() == 2));
    assert_eq!(cluster.password.as_deref(), Some("secret"));
    assert_eq!(url("valkey://h").to_string(), "redis://h:6379");
}

#[test]
fn a_password_may_contain_separators() {
    let url = url("redis://user:a/b:c@d@host:1");
    assert_eq!(url.password.as_deref(), Some("a/b:c@d"));
    assert_eq!(url.place, Deployment::Standalone(Address { host: "host".into(), port: 1 }));
}

#[test]
fn what_is_secret_is_never_shown() {
    for text in ["redis://user:hunter2@h/1", "redis://:hunter2@h", "redis+cluster://u:hunter2@a,b:1"] {
        let url = url(text);
        assert!(!format!("{url} {url:?}").contains("hunter2"), "{url}");
        assert!(url.to_string().contains("***"), "{url}");
    }
    for text in [
        "redis://user:hunter2@h:port",
        "redis://user:hunter2%@h",
        "http://user:hunter2@h",
        "redis://h/?password=hunter2",
        "redis://ana:hunter2",
        "redis://h#hunter2",
    ] {
        assert!(!wrong(text).contains("hunter2"), "{}", wrong(text));
    }
    assert_eq!(url("redis://u@h").with_password("hunter2").to_string(), "redis://u:***@h:6379");
}

#[test]
fn what_is_wrong_is_said_with_what_would_do() {
    for (text, part) in [
        ("localhost:6379", "no scheme; write redis://"),
        ("http://h", "\"http\" is not known; write redis://"),
        ("redis://", "names no host"),
        ("redis://h:0", "from 1 to 65535"),
        ("redis://h:70000", "from 1 to 65535"),
        ("redis://::1", "in brackets"),
        ("redis://a,b", "redis+cluster://"),
        ("redis://h/x", "\"x\" is no number"),
        ("redis://h/1/2", "goes on behind the database"),
        ("redis://h?tls=1", "says nothing here"),
        ("redis+sentinel://h", "which service"),
        ("redis+cluster://h/1", "no databases but 0"),
        ("redis://u:%zz@h", "begins no byte"),
    ] {
        let said = wrong(text);
        assert!(said.contains(part), "{text}: {said}");
    }
}
