//! Tests that a condition matches every spelling of a value, in a request and in a rule.

use tidegate_rules::{Attributes, Policy};

use crate::requests::{policy, still_gate};

/// A condition, values that match, and values that do not.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

const PATHS: [Row; 14] = [
    (
        "/login",
        &[
            "/login",
            "//login",
            "/./login",
            "/x/../login",
            "/x//.././login",
            "/../login",
            "/%6Cogin",
            "/%6cogin",
            "/%2e/login",
            "/x/%2E%2e/login",
            "/x%2F..%2Flogin",
            "/login?next=/",
            "/login#top",
            "/login?",
            "///login",
            // As servlet containers read them.
            "/login;x=1",
            "/login;",
            "/;x/login;y?z",
            "/x/..;/login",
            "/x/..;y=1/./login",
            // As a C string, which ends at a NUL.
            "/login%00",
            "/login%00.png",
            "/login\0/x",
            "/x/..;%00/../login",
            // As a proxy may pass it on.
            "http://h/login",
            "HTTPS://h:8443//login;x?y",
        ],
        &[
            "/login/",
            "/Login",
            "/login/x",
            "/x/login",
            "/%256cogin",
            "/login%3Fx",
            "login",
            "",
            "/logi",
            "/x/login%00",
            "/login%3Bx",
            "/x;/login",
            "http://h",
            "http:/login",
            "//h/login",
            "*",
        ],
    ),
    ("/%6cogin", &["/login", "/%6Cogin"], &["/%256cogin"]),
    ("/x//../login", &["/login"], &["/x/login", "/x"]),
    ("/login/", &["/login/", "/login//", "/login/.", "/login/x/.."], &["/login"]),
    (
        "/admin/*",
        &[
            "/admin/",
            "/admin/x",
            "/x/../admin/y",
            "//admin//y",
            "/%61dmin/y",
            "/admin%2fy",
            "/admin/./y",
            "/admin/?x",
            // As received: a backend may read it that way.
            "/admin/..",
            "/admin/../x",
            "/admin;/x",
            "/admin;a=1/x",
            "/x/..;/admin/y",
            "http://h/admin/x",
            "/admin/%00",
        ],
        &["/admin", "/administrator", "/x/admin/y", "/admin%252fy"],
    ),
    (
        "/admin*",
        &["/admin", "/administrator", "/admin/x", "/x/../admin", "/%61dmin"],
        &["/x/admin", "/adm", "/Admin"],
    ),
    ("//admin//x*", &["/admin/x", "/admin/xy", "//admin/x/y"], &["/admin/", "/x"]),
    ("/%61dmin/../%62oss*", &["/boss", "/bossy"], &["/admin", "/admin/boss"]),
    ("/a/./b/\\.*", &["/a/b/.x", "/a/b/..x"], &["/a/b/", "/a/b/x", "/a/"]),
    (
        "/users/{id}",
        &[
            "/users/7",
            "//users/7",
            "/users/./7",
            "/x/../users/7",
            "/users/%37",
            "/users//7",
            "/users/7?x",
            "/users/7%2Fx",
            "/users/7%2f",
        ],
        &["/users/", "/users", "/users/7/", "/users/7/x", "/users/x/.."],
    ),
    ("/us%65rs/{id}", &["/users/7"], &["/us%2565rs/7"]),
    (
        "/api/{*rest}",
        &["/api/x", "/api/x/y", "/api//x", "/x/../api/x", "/api/x/", "/api/x/..", "/api/f/..%2F..%2Fx"],
        &["/api", "/api/"],
    ),
    ("*", &["/", "/x", "", "*", "x"], &[]),
    ("/\\*", &["/*", "/%2a"], &["/", "/x"]),
];

const HOSTS: [Row; 6] = [
    (
        "example.com",
        &["example.com", "EXAMPLE.COM", "example.com:80", "Example.com.", "example.com.:443", "example.com:"],
        &["www.example.com", "example.co", "example.com.evil", "", "example.comx"],
    ),
    ("Example.COM:8080", &["example.com", "EXAMPLE.com:1"], &["www.example.com"]),
    ("WWW.*", &["www.example.com", "Www.x", "www.x."], &["example.com", "ww"]),
    ("www.Example*", &["www.example.com", "WWW.EXAMPLE.ORG:80"], &["www.exampl"]),
    ("[::1]", &["[::1]", "[::1]:80"], &["::1", "[::2]"]),
    ("*", &["", "x"], &[]),
];

const ADDRESSES: [Row; 6] = [
    (
        "10.0.0.0/8",
        &["10.0.0.1", "::ffff:10.1.2.3", "10.255.255.255"],
        &["11.0.0.0", "::10.1.2.3", "10", "10.0.0.1:80"],
    ),
    ("::ffff:10.0.0.0/104", &["10.0.0.1", "::ffff:10.1.2.3"], &["11.0.0.0", "::1"]),
    ("::ffff:192.0.2.7", &["192.0.2.7", "::ffff:c000:207"], &["192.0.2.8", "::192.0.2.7"]),
    ("fe80::/10", &["fe80::1", "fe80::1%eth0", "febf::"], &["fec0::", "::1"]),
    ("2001:db8::/32", &["2001:db8::", "2001:DB8:ffff::"], &["2001:db9::", "192.0.2.7"]),
    ("::/0", &["::1", "192.0.2.7", "fe80::1%eth0"], &["", "x"]),
];

fn is_for(policy: &Policy, attribute: &str, value: &str) -> bool {
    !policy.matching(&Attributes::new().set(attribute.to_owned(), value)).is_empty()
}

fn hold(attribute: &str, rows: &[Row]) {
    for (condition, held, others) in rows {
        let rule = |more: &str| {
            format!("[[rule]]\nname = 'rule'\nlimit = '1/s'\nwhen = {{ {attribute} = {more} }}\n")
        };
        // A single value is found by the index; behind another condition the value is matched.
        let alone = policy(&rule(&format!("'{condition}'")));
        let listed = policy(&rule(&format!("['{condition}', '{condition}']")));
        let behind = policy(&format!(
            "{}[[rule]]\nname = 'same'\nlimit = '2/s'\nwhen = {{ {attribute} = '{condition}', x = '1' }}\n",
            rule(&format!("'{condition}'"))
        ));
        for (values, expected) in [(held, true), (others, false)] {
            for value in *values {
                let what = format!("{attribute} = {condition:?} and {value:?}");
                assert_eq!(is_for(&alone, attribute, value), expected, "{what}");
                assert_eq!(is_for(&listed, attribute, value), expected, "{what}");
                let request = Attributes::new().set(attribute.to_owned(), *value).set("x", "1");
                assert_eq!(behind.matching(&request).len(), if expected { 2 } else { 0 }, "{what}");
            }
        }
        assert!(policy(&rule(&format!("'{condition}'"))).matching(&Attributes::new()).is_empty());
    }
}

#[test]
fn a_condition_on_a_path_is_for_all_its_spellings() {
    hold("path", &PATHS);
}

#[test]
fn an_exception_needs_every_reading_and_a_refusal_any() {
    let rule = |decision: &str| {
        policy(&format!(
            "[[rule]]\nname = 'rule'\nwhen = {{ path = '/health/*' }}\ndecision = '{decision}'\n"
        ))
    };
    let (allow, deny) = (rule("allow"), rule("deny"));
    for (path, is_allowed, is_denied) in [
        ("/health/live", true, true),
        ("/health//live", true, true),
        ("/%68ealth/live", false, true),
        ("/health/../api/x", false, true),
        ("/health/..%2Fapi", false, true),
        ("/x/../health/live", false, true),
        ("/health/live;x=1", true, true),
        ("/health/..;/api/x", false, true),
        ("/x/..;/health/live", false, true),
        ("/health/live%00", true, true),
        ("/health/%00/../../api", false, true),
        ("http://h/health/live", false, true),
        ("/api/x", false, false),
    ] {
        let decided = (is_for(&allow, "path", path), is_for(&deny, "path", path));
        assert_eq!(decided, (is_allowed, is_denied), "{path}");
    }
}

#[test]
fn an_explanation_names_the_spelling_that_decided() {
    let rule =
        |says: &str| still_gate(&format!("[[rule]]\nname = 'rule'\nwhen = {{ path = '/a' }}\n{says}\n"));
    for (says, path, value, holds) in [
        ("limit = '1/s'", "/a;x", "/a", true),
        ("limit = '1/s'", "/x;/b", "/x/b", false),
        ("decision = 'allow'", "/a", "/a", true),
        ("decision = 'allow'", "/a;x", "/a;x", false),
        ("decision = 'allow'", "/x/../a", "/x/../a", false),
    ] {
        let request = Attributes::new().set("path", path);
        let explained = rule(says).explain(&request).now().expect("a store in memory answers at once");
        let condition = &explained.rules[0].conditions[0];
        assert_eq!((condition.value.as_deref(), condition.holds), (Some(value), holds), "{says} {path}");
    }
}

#[test]
fn a_method_is_the_same_in_any_case_for_a_limit_and_not_for_an_exception() {
    let rule =
        |says: &str| policy(&format!("[[rule]]\nname = 'rule'\nwhen = {{ method = 'POST' }}\n{says}\n"));
    let (limit, allow) = (rule("limit = '1/s'"), rule("decision = 'allow'"));
    for (method, is_limited, is_allowed) in [
        ("POST", true, true),
        ("post", true, false),
        ("Post", true, false),
        ("POST ", false, false),
        ("GET", false, false),
        ("", false, false),
    ] {
        let decided = (is_for(&limit, "method", method), is_for(&allow, "method", method));
        assert_eq!(decided, (is_limited, is_allowed), "{method:?}");
    }
}

#[test]
fn a_condition_on_a_host_is_for_all_its_spellings() {
    hold("host", &HOSTS);
}

#[test]
fn a_condition_on_an_address_is_for_all_its_clothes() {
    hold("ip", &ADDRESSES);
}

#[test]
fn a_condition_that_could_never_hold_is_an_error() {
    for path in [
        "/login?next=*",
        "/login?x",
        "/login#x",
        "/a?b/{id}",
        "/a//{id}",
        "/./{id}",
        "/a/../{id}",
        "/a%2Fb/{id}",
        "/%2e%2e/{id}",
        "/%2E/{*rest}",
        "//{*rest}",
        "/users/:id",
        "/users/<id>/x",
        "/api/**",
        "/users/{id}/*",
        "!/login",
    ] {
        let text = format!("[[rule]]\nname = 'rule'\nlimit = '1/s'\nwhen = {{ path = '{path}' }}\n");
        let error = Policy::from_toml(&text).expect_err(path).to_string();
        assert!(error.contains(path) && error.contains("; "), "{error}");
    }
    let text = "[[rule]]\nname = 'rule'\nlimit = '1/s'\nwhen = { host = 'example.com:80*' }\n";
    assert!(Policy::from_toml(text).expect_err("a port").to_string().contains("port"));
    for when in
        ["not = { user = '*' }", "not = 'ana'", "or = { path = '/x' }", "user = '!ana'", "ip = '!::1'"]
    {
        let text = format!("[[rule]]\nname = 'rule'\nlimit = '1/s'\nwhen = {{ path = '/a', {when} }}\n");
        let error = Policy::from_toml(&text).expect_err(when).to_string();
        assert!(error.contains("; ") || error.contains(": write "), "{error}");
    }
}

#[test]
fn what_looks_like_an_operator_can_still_be_meant() {
    let rule = |when: &str| format!("[[rule]]\nname = 'rule'\nlimit = '1/s'\nwhen = {{ {when} }}\n");
    for (when, attribute, value) in [
        ("user = '\\!ana'", "user", "!ana"),
        ("user = 'a!'", "user", "a!"),
        ("any = 'x'", "any", "x"),
        ("'header.not' = 'x'", "header.not", "x"),
        ("path = '/users/%3Aid'", "path", "/users/:id"),
        ("path = '/v1/a:b'", "path", "/v1/a:b"),
        ("path = '/a;b'", "path", "/a;b"),
    ] {
        assert!(is_for(&policy(&rule(when)), attribute, value), "{when}");
    }
}

#[test]
fn header_fields_are_the_same_in_a_condition_in_any_case() {
    for name in ["header.x-plan", "header.X-Plan", "header.X-PLAN"] {
        let policy =
            policy(&format!("[[rule]]\nname = 'rule'\nlimit = '1/s'\nwhen = {{ '{name}' = 'free' }}\n"));
        for sent in ["header.x-plan", "header.X-Plan", "header.X-PLAN"] {
            assert!(is_for(&policy, sent, "free") && !is_for(&policy, sent, "Free"), "{name} {sent}");
        }
        assert!(!is_for(&policy, "x-plan", "free") && !is_for(&policy, "cookie.x-plan", "free"));
        let twice = Attributes::new().set("header.X-Plan", "free").set("header.x-plan", "paid");
        assert!(policy.matching(&twice).is_empty(), "what is said last counts");
    }
}
