//! Tests of the keys that examples make of addresses.
//!
//! An IPv6 client has at least a /64. With its whole address as a key it would have 2^64 quotas.

use std::fs;

use super::example::{folder, shell, sources};
use crate::process::Process;

/// Pairs of addresses of one client.
const SAME: [(&str, &str); 4] = [
    ("192.0.2.7", "::ffff:192.0.2.7"),
    ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"),
    ("2001:db8::1", "2001:db8:0:0:1::"),
    ("::1", "::2:0:0:1"),
];

/// Addresses of different clients.
const APART: [&str; 7] =
    ["192.0.2.7", "192.0.2.8", "2001:db8:1:2::1", "2001:db8:1:3::1", "2001:db8:1::1", "2001:db8::1", "::1"];

/// Runs a program that prints a key for each address among its arguments, and checks them.
fn holds(name: &str, files: &[(&str, &str)], lines: &str) {
    let folder = folder(&format!("keys_{name}"));
    for (file, text) in files {
        fs::write(folder.join(file), text).expect("a file can be written");
    }
    let addresses: Vec<_> = SAME.iter().flat_map(|(one, other)| [*one, *other]).chain(APART).collect();
    let mut command = shell(&folder, lines);
    command.env("ADDRESSES", addresses.join(" "));
    let ended = Process::run(&mut command, b"");
    let keys: Vec<_> = ended.out.lines().filter_map(|line| line.strip_prefix("key ")).collect();
    assert_eq!((ended.code, keys.len()), (Some(0), addresses.len()), "{ended:?}");
    let (same, apart) = keys.split_at(2 * SAME.len());
    for (keys, addresses) in same.chunks(2).zip(SAME) {
        assert_eq!(keys[0], keys[1], "{addresses:?}");
    }
    for (nth, key) in apart.iter().enumerate() {
        let others = apart.iter().enumerate().filter(|(other, _)| *other != nth);
        assert!(others.into_iter().all(|(_, other)| other != key), "{}: {key}", APART[nth]);
    }
    println!("{name}: {apart:?}");
}

#[test]
fn in_python() {
    const PROGRAM: &str = "
import os, sys
sys.path.append('examples/clients/python')
import wsgi_middleware
wsgi_middleware.take = lambda key: print('key', key) or ('200 OK', [])
for address in os.environ['ADDRESSES'].split():
    wsgi_middleware.limited(wsgi_middleware.hello)({'REMOTE_ADDR': address}, lambda *_: None)
";
    holds("python", &[("keys.py", PROGRAM)], "python3 keys.py");
}

#[test]
fn in_javascript() {
    let text = fs::read_to_string(sources().join("node/http_server.js")).expect("it is there");
    let function = text.find("function keyOf").and_then(|at| text[at..].split("\n}\n").next());
    let function = function.expect("it has keys");
    let program = format!(
        "{function}\n}}\nfor (const address of process.env.ADDRESSES.split(' ')) console.log('key', keyOf(address));"
    );
    holds("javascript", &[("keys.js", &program)], "node keys.js");
}

#[test]
fn in_go() {
    const PROGRAM: &str = r#"package main
import ("fmt"; "net/netip"; "os"; "strings"; "testing")
func TestKeys(*testing.T) {
	for _, address := range strings.Fields(os.Getenv("ADDRESSES")) {
		fmt.Println("key", keyOf(netip.AddrPortFrom(netip.MustParseAddr(address), 80)))
	}
}
"#;
    let files = [("examples/clients/go/goredis/keys_test.go", PROGRAM)];
    let lines = "GO111MODULE=off GOPATH=/usr/share/gocode go test -vet=off ./examples/clients/go/goredis -v";
    holds("go", &files, lines);
}

#[test]
fn in_java() {
    const PROGRAM: &str = r#"class Keys {
    public static void main(String[] arguments) throws Exception {
        for (var address : System.getenv("ADDRESSES").split(" ")) {
            System.out.println("key " + HttpServerFilter.keyOf(java.net.InetAddress.getByName(address)));
        }
    }
}
"#;
    let lines = "javac -d classes Keys.java examples/clients/java/Tidegate.java \
                 examples/clients/java/HttpServerFilter.java\njava -cp classes Keys";
    holds("java", &[("Keys.java", PROGRAM)], lines);
}
