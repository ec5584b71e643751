//! A shop in a process of its own, so that it can be killed, and so that what it counts and costs is its own.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// How long a shop may take to open, also if its database has much to recover.
const START: Duration = Duration::from_secs(60);

/// Between two tries to open it.
const REST: Duration = Duration::from_millis(100);

/// What a shop is started with.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The program whose `serve` is the shop.
    pub program: PathBuf,
    /// Its database.
    pub database: String,
    /// Its Redis, if it has one.
    pub redis: Option<String>,
    /// Where it listens, now and whenever it is started again; port 0 is a free one each time.
    pub listen: SocketAddr,
    /// What it signs with.
    pub secret: String,
    /// What else is said to `serve`.
    pub further: Vec<String>,
}

/// A shop that is killed when it is dropped, and ends when this program does, however that ends.
#[derive(Debug)]
pub struct Serving {
    stage: Stage,
    sale: i64,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    address: SocketAddr,
    /// What the shopkeeper's page is asked with.
    keeper: String,
}

impl Serving {
    /// Opens a shop for a sale that is there already.
    pub async fn start(stage: &Stage, sale: i64) -> io::Result<Serving> {
        let mut serving = Serving { stage: stage.clone(), sale, running: None };
        serving.running = Some(serving.open().await?);
        Ok(serving)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.running.as_ref().map_or(self.stage.listen, |running| running.address)
    }

    /// Where the shopkeeper's numbers are: a path with its token.
    pub fn numbers(&self) -> Option<String> {
        self.running.as_ref().map(|running| format!("/api/keeper/numbers?{}", running.keeper))
    }

    /// Ends it at once, as `kill -9` does, and waits until it is gone.
    pub async fn kill(&mut self) -> io::Result<()> {
        if let Some(mut running) = self.running.take() {
            running.child.kill().await?;
        }
        Ok(())
    }

    /// Opens it again, at the same address for the same sale; kills it before, if it still lives.
    pub async fn restart(&mut self) -> io::Result<()> {
        self.kill().await?;
        let started = Instant::now();
        loop {
            match self.open().await {
                Ok(running) => {
                    self.running = Some(running);
                    return Ok(());
                }
                // Its database may just not be there yet.
                Err(_) if started.elapsed() < START => sleep(REST).await,
                Err(error) => return Err(error),
            }
        }
    }

    async fn open(&self) -> io::Result<Running> {
        let mut child = self.command().spawn()?;
        let (Some(stdout), Some(mut stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("its output is no pipe"));
        };
        let mut lines = BufReader::new(stdout).lines();
        let opening = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(found) = keeper_in(&line) {
                    return Ok(Some(found));
                }
            }
            Ok::<_, io::Error>(None)
        };
        if let Some((address, keeper)) = timeout(START, opening).await.map_err(io::Error::other)?? {
            // What it writes later is read as well, lest it waits for a reader.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            tokio::spawn(async move { tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await });
            return Ok(Running { child, address, keeper });
        }
        let mut complaint = String::new();
        stderr.read_to_string(&mut complaint).await?;
        Err(io::Error::other(format!("{}: it did not open: {complaint}", self.stage.program.display())))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.stage.program);
        command
            .args(["serve", "--experiment", "--while-input"])
            .args(["--listen", &self.stage.listen.to_string(), "--sale", &self.sale.to_string()])
            .args(&self.stage.further)
            // Not among the arguments, where everybody on the machine reads them.
            .env("DATABASE_URL", &self.stage.database)
            .env("FLASH_SALE_SECRET", &self.stage.secret)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        match &self.stage.redis {
            Some(redis) => command.env("REDIS_URL", redis),
            // A shop without one has none, even if this program has one in its environment.
            None => command.env_remove("REDIS_URL"),
        };
        command
    }
}

/// Where the shopkeeper's page is, if the line says so: its address and its query.
fn keeper_in(line: &str) -> Option<(SocketAddr, String)> {
    let (address, query) = line.split_once("http://")?.1.split_once("/keeper?")?;
    Some((address.parse().ok()?, query.split_whitespace().next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shopkeepers_page_is_found_in_what_a_shop_says() {
        let found = keeper_in("shopkeeper: http://127.0.0.1:4711/keeper?token=abc (keep it)").unwrap();
        assert_eq!(found, ("127.0.0.1:4711".parse().unwrap(), "token=abc".to_owned()));
        assert_eq!(keeper_in("buyers: http://127.0.0.1:4711/"), None);
    }

    #[test]
    fn no_secret_is_among_the_arguments_of_a_shop() {
        let mut stage = Stage {
            program: "flash-sale".into(),
            database: "postgres://shop:hush@db/shop".to_owned(),
            redis: Some("redis://:hush@cache".to_owned()),
            listen: "127.0.0.1:0".parse().unwrap(),
            secret: "hush".to_owned(),
            further: vec!["--limiter".to_owned(), "off".to_owned()],
        };
        let redis_of = |stage: &Stage| {
            let command = Serving { stage: stage.clone(), sale: 7, running: None }.command();
            let command = command.as_std();
            let has_secret = command.get_args().any(|argument| argument.to_string_lossy().contains("hush"));
            assert!(!has_secret, "{command:?}");
            let mut settings = command.get_envs();
            settings.find(|(name, _)| *name == "REDIS_URL").map(|(_, value)| value.map(ToOwned::to_owned))
        };
        assert_eq!(redis_of(&stage), Some(Some("redis://:hush@cache".into())));
        stage.redis = None;
        assert_eq!(redis_of(&stage), Some(None), "the environment of this program is not passed on");
    }
}
