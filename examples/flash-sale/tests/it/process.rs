//! The program: it prints its addresses, serves, stops at a signal, and audits the books.

use std::path::Path;
use std::process::{Output, Stdio};

use sqlx::{Connection, Executor};
use testbed::Folder;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};

/// Returns the program, which is killed when this is dropped.
fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flash-sale"));
    command.args(arguments).current_dir(folder).kill_on_drop(true);
    for name in ["DATABASE_URL", "FLASH_SALE_SECRET", "REDIS_URL"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

async fn run(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = program(folder.path(), arguments).output().await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A shop that serves, as a process.
struct Serving {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    buyers: String,
    keeper: String,
}

impl Serving {
    async fn start(folder: &Folder, arguments: &[&str]) -> Serving {
        let own = ["serve", "--listen", "127.0.0.1:0"];
        let arguments: Vec<_> = own.iter().chain(arguments).copied().collect();
        let mut child = program(folder.path(), &arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut url_of = async |who: &str| loop {
            let line = lines.next_line().await.unwrap().expect("it says where it is");
            if let Some((_, url)) = line.split_once("http://").filter(|(before, _)| before.starts_with(who)) {
                return url.to_owned();
            }
        };
        let (buyers, keeper) = (url_of("buyers:").await, url_of("shopkeeper:").await);
        Serving { child, lines, buyers, keeper }
    }

    async fn get(&self, url: &str) -> String {
        let (host, path) = url.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).await.unwrap();
        let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    /// Stops it by a signal of this name; returns its last line and its status.
    async fn end(mut self, signal: &str) -> (Option<String>, Option<i32>) {
        let pid = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &pid]).status().await.unwrap();
        assert!(sent.success());
        let mut last = None;
        while let Some(line) = self.lines.next_line().await.unwrap() {
            last = Some(line);
        }
        (last, self.child.wait().await.unwrap().code())
    }
}

#[tokio::test]
async fn a_shop_prints_its_address_and_ends_at_a_signal() {
    let folder = Folder::new("process");
    for signal in ["TERM", "INT"] {
        let shop =
            Serving::start(&folder, &["--database", "sqlite:shop.db", "--name", "Lamp", "--price", "12.50"])
                .await;
        let page = shop.get(&shop.buyers).await;
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("set-cookie: visitor="), "{page}");
        let keeper = shop.get(&shop.keeper).await;
        assert!(keeper.starts_with("HTTP/1.1 303") && keeper.contains("SameSite=Strict"), "{keeper}");
        let sale = shop.get(&format!("{}api/sale", shop.buyers)).await;
        for part in ["\"name\":\"Lamp\"", "\"price_cents\":1250", "\"stock\":100", "\"state\":\"before\""] {
            assert!(sale.contains(part), "{part}: {sale}");
        }
        assert_eq!(shop.end(signal).await, (Some("closed".to_owned()), Some(0)), "{signal}");
    }
}

#[tokio::test]
async fn books_that_are_right_are_0_and_books_that_are_wrong_are_1() {
    let folder = Folder::new("process");
    let shop = Serving::start(&folder, &["--database", "sqlite:shop.db"]).await;
    shop.end("TERM").await;
    let audit = ["audit", "--database", "sqlite:shop.db"];
    assert_eq!(run(&folder, &audit).await, (Some(0), String::new(), String::new()));

    let url = format!("sqlite:{}", folder.file("shop.db").display());
    let mut books = sqlx::SqliteConnection::connect(&url).await.unwrap();
    books.execute("UPDATE sales SET available = available - 1").await.unwrap();
    books.close().await.unwrap();
    let (code, output, _) = run(&folder, &audit).await;
    assert_eq!(code, Some(1));
    let line: serde_json::Value = serde_json::from_str(output.trim()).unwrap();
    assert_eq!(line["wrong"], "pieces sold, reserved and available are not the stock");
    assert_eq!(line["rows"], 1);

    let (code, _, error) = run(&folder, &["audit", "--database", "sqlite:nowhere.db"]).await;
    assert_eq!(code, Some(2));
    assert!(error.starts_with("flash-sale: database: "), "{error}");
    assert!(!folder.file("nowhere.db").exists());
}

#[tokio::test]
async fn invalid_settings_are_errors_before_anything_is_opened() {
    let folder = Folder::new("process");
    folder.write("rules.toml", "[[rule]]\nname = \"x\"\nlimit = \"ten\"\n");
    for (arguments, said) in [
        (vec!["--stock", "-1"], "--stock"),
        (vec!["--price", "cheap"], "price \"cheap\": this is none; write one such as 9.99"),
        (vec!["--opens-in", "soon"], "time \"soon\""),
        (vec!["--lasts", "0s"], "time \"0s\""),
        (vec!["--strategy", "magic"], "strategy \"magic\": there is none of this name"),
        (vec!["--limiter", "magic"], "limiter \"magic\": there is none of this name"),
        (vec!["--rate", "many"], "limit \"many\""),
        (vec!["--queue", "5/s burst 3"], "queue \"5/s burst 3\": it has no queue"),
        (vec!["--per-address", "0"], "--per-address"),
        (vec!["--header-timeout", "0s"], "time \"0s\""),
        (vec!["--sale", "1", "--stock", "5"], "--sale"),
        (vec!["--secret", ""], "secret: it is empty"),
        (vec!["--rules", "none.toml"], "rules none.toml"),
        (vec!["--rules", "rules.toml"], "limit \"ten\""),
        (vec!["--redis", "nowhere"], "address of redis"),
        (vec!["--database", "oracle://shop"], "address of kind \"oracle\": write"),
        (vec!["--listen", "localhost"], "--listen"),
    ] {
        let all: Vec<_> = ["serve"].iter().chain(&arguments).copied().collect();
        let (code, output, error) = run(&folder, &all).await;
        assert_eq!((code, output.as_str()), (Some(2), ""), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
    assert!(!folder.file("flash-sale.db").exists());
}

#[tokio::test]
async fn without_arguments_it_is_a_shop_on_a_file_here() {
    let folder = Folder::new("process");
    let mut child = program(folder.path(), &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Its port may be free or not.
    crate::open::eventually("the file", async || folder.file("flash-sale.db").exists()).await;
    child.kill().await.unwrap();
}

#[tokio::test]
async fn secrets_are_not_shown_in_the_help() {
    let folder = Folder::new("process");
    for (name, shown) in [
        ("serve", vec!["FLASH_SALE_SECRET", "DATABASE_URL", "REDIS_URL"]),
        ("rush", vec!["DATABASE_URL", "REDIS_URL"]),
    ] {
        let mut command = program(folder.path(), &[name, "--help"]);
        command.env("FLASH_SALE_SECRET", "hush-hush").env("REDIS_URL", "redis://:hush-hush@cache");
        command.env("DATABASE_URL", "postgres://shop:hush-hush@db/shop");
        let help = String::from_utf8(command.output().await.unwrap().stdout).unwrap();
        assert!(shown.iter().all(|name| help.contains(name)) && !help.contains("hush-hush"), "{help}");
    }
}

#[tokio::test]
async fn the_url_of_redis_can_come_from_the_environment() {
    let folder = Folder::new("process");
    let output = program(folder.path(), &["serve"]).env("REDIS_URL", "nowhere").output().await.unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("address of redis"), "{error}");
}

#[tokio::test]
async fn a_start_during_a_sale_prints_the_flags_to_resume_it() {
    let folder = Folder::new("process");
    // An address in use stops it at once, after the database was opened.
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let serve = ["serve", "--database", "sqlite:shop.db", "--listen", &address];
    let start = async |further: &[&str]| {
        let arguments: Vec<_> = serve.iter().chain(further).copied().collect();
        let (code, _, error) = run(&folder, &arguments).await;
        assert_eq!(code, Some(2), "{error}");
        error.lines().filter(|line| line.contains("is still on")).map(str::to_owned).collect::<Vec<_>>()
    };
    let nothing: [&str; 0] = [];
    assert_eq!(start(&["--opens-in", "0s", "--lasts", "1ms"]).await, nothing);
    assert_eq!(start(&["--opens-in", "1h"]).await, nothing, "sale 1 is over");
    let line = "flash-sale: sale 2 is still on in this database; to go on with it: --sale 2, \
                with the --secret that its links were signed with";
    assert_eq!(start(&[]).await, [line]);
    assert_eq!(start(&["--sale", "2"]).await, nothing);
    let (code, _, error) = run(&folder, &["serve", "--database", "sqlite:shop.db", "--sale", "9"]).await;
    assert_eq!(code, Some(2));
    assert!(error.contains("sale 9: the database has none of this number"), "{error}");
}
