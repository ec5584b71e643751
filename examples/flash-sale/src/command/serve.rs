//! `flash-sale serve`: runs a shop until it is stopped.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{fs, io, thread};

use clap::{Args, value_parser};
use tidegate::Limit;
use tidegate_rules::Policy;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Books, Failed, values};
use crate::database::Database;
use crate::hint::Hint;
use crate::http::{self, App, PER_ADDRESS, Settings, span};
use crate::limits::{Limiting, RULES};
use crate::link::Signer;
use crate::sale::{NewSale, Sale};
use crate::shop::Shop;
use crate::strategy::Strategy;

/// Opens a shop with one sale, and prints the addresses of the buyers' and the shopkeeper's page.
#[derive(Args, Debug)]
pub(super) struct ServeArguments {
    #[command(flatten)]
    books: Books,
    /// The maximum number of connections to the database.
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u32).range(1..=1000))]
    connections: u32,
    /// The address to listen on; port 0 is a free one.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Sells this sale of the database, in place of a new one.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["stock", "name", "price", "opens_in", "lasts", "pay_within"])]
    sale: Option<i64>,
    /// The number of pieces of the new sale.
    #[arg(long, default_value_t = 100, allow_negative_numbers = true, value_parser = value_parser!(i64).range(0..=1_000_000_000))]
    stock: i64,
    /// The name of the product.
    #[arg(long, default_value = "A thing that everybody wants", value_parser = name)]
    name: String,
    /// The price of a piece.
    #[arg(long, default_value = "9.99", value_parser = values::cents)]
    price: i64,
    /// The time until the sale opens.
    #[arg(long, default_value = "10s", value_parser = values::time, value_name = "TIME")]
    opens_in: Duration,
    /// The time from the opening to the end.
    #[arg(long, default_value = "15m", value_parser = values::some_time, value_name = "TIME")]
    lasts: Duration,
    /// The time for which a piece is reserved until it is paid for.
    #[arg(long, default_value = "2m", value_parser = values::some_time, value_name = "TIME")]
    pay_within: Duration,
    /// The strategy that takes pieces: value, version, conditional, pessimistic, redis; naive oversells.
    #[arg(long, default_value_t = Strategy::Conditional)]
    strategy: Strategy,
    /// The limiter in front of the shop: bucket, queue, or off for none.
    #[arg(long, default_value_t = Limiting::Bucket)]
    limiter: Limiting,
    /// The rate limit of all buyers together.
    #[arg(long, default_value = "500/s burst 50", value_parser = values::rate, value_name = "LIMIT")]
    rate: Limit,
    /// The rate and the capacity of the queue.
    #[arg(long, default_value = "200/s queue 2000", value_parser = values::queue, value_name = "LIMIT")]
    queue: Limit,
    /// The maximum number of places in the queue for one address, and of pieces that it reserves within the time to
    /// pay.
    #[arg(long, default_value_t = PER_ADDRESS, value_name = "NUMBER")]
    per_address: NonZeroU16,
    /// Rules for each buyer and each address, in place of the shop's own.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// The Redis server of the strategy redis; it may fail at any time.
    #[arg(long, env = "REDIS_URL", hide_env_values = true, value_name = "URL")]
    redis: Option<String>,
    /// The secret that signs links; without it they are valid until the shop stops.
    #[arg(long, env = "FLASH_SALE_SECRET", hide_env_values = true, value_parser = secret)]
    secret: Option<String>,
    /// The timeout of a request's head, after which its connection is closed.
    #[arg(long, default_value = "10s", value_parser = values::some_time, value_name = "TIME")]
    header_timeout: Duration,
    /// Buyers reach the shop over TLS, through a proxy: browsers send its cookies over TLS only.
    #[arg(long)]
    behind_tls: bool,
    /// Lets requests choose by x-strategy and x-limiter: for measurements, never for a real shop.
    #[arg(long)]
    experiment: bool,
    /// Exits when its standard input is closed: for programs that start it.
    #[arg(long, hide = true)]
    while_input: bool,
}

pub(super) async fn run(arguments: ServeArguments) -> Result<ExitCode, Failed> {
    if arguments.while_input {
        // It has a thread of its own, so that the program can exit without it.
        thread::spawn(end_with_input);
    }
    let shutdown = told_to_end()?;
    let rules = arguments.rules()?;
    let hint = arguments.redis.as_deref().map(Hint::connect).transpose()?;
    let database = Database::open(&arguments.books.database, arguments.connections).await?;
    database.warm_up().await;
    let sale = arguments.sale(&database).await?;
    let shop = Shop { hint, ..Shop::new(database.clone()) };
    let signer = arguments.secret.as_deref().map_or_else(Signer::random, Signer::new);
    let token = signer.keeper_token();
    let settings = Settings {
        strategy: arguments.strategy,
        limiting: arguments.limiter,
        rate: arguments.rate,
        queue: arguments.queue,
        rules,
        signer,
        sale: Some(sale.id),
        per_address: arguments.per_address,
        is_experiment: arguments.experiment,
        header_timeout: arguments.header_timeout,
        is_behind_tls: arguments.behind_tls,
    };
    let app = App::new(shop, settings).await?;
    let listener = TcpListener::bind(arguments.listen).await;
    let listener = listener.map_err(|error| format!("address {}: {error}", arguments.listen))?;
    let at = reachable(listener.local_addr()?);
    println!("{}", arguments.greeting(&sale, &database));
    println!("buyers:     http://{at}/");
    println!("shopkeeper: http://{at}/keeper?token={token}");
    http::serve(listener, app, shutdown).await?;
    database.close().await;
    println!("closed");
    Ok(ExitCode::SUCCESS)
}

impl ServeArguments {
    fn rules(&self) -> Result<Policy, Failed> {
        let Some(path) = &self.rules else { return Ok(Policy::from_toml(RULES)?) };
        let text = fs::read_to_string(path).map_err(|error| format!("rules {}: {error}", path.display()))?;
        Policy::from_toml(&text).map_err(|wrong| format!("rules {}:\n{wrong}", path.display()).into())
    }

    /// Returns the requested sale, or a new one.
    async fn sale(&self, database: &Database) -> Result<Sale, Failed> {
        let id = match self.sale {
            Some(id) => id,
            None => {
                remind(database).await?;
                let new = NewSale {
                    name: self.name.clone(),
                    price_cents: self.price,
                    stock: self.stock,
                    opens_in: self.opens_in,
                    lasts: self.lasts,
                    pay_within: self.pay_within,
                };
                database.create_sale(&new).await?
            }
        };
        let sale = database.sale(id).await?;
        sale.ok_or_else(|| {
            format!("sale {id}: the database has none of this number; leave out --sale for a new one").into()
        })
    }

    fn greeting(&self, sale: &Sale, database: &Database) -> String {
        let until = |at: i64| values::in_words(span(at - sale.now));
        let when = match sale.now < sale.opens_at {
            true => format!("opens in {}", until(sale.opens_at)),
            false => format!("open for {}", until(sale.closes_at)),
        };
        let Sale { id, name, available, stock, .. } = sale;
        let price = values::price(sale.price_cents);
        let limiter = match self.limiter {
            Limiting::Off => "no limiter".to_owned(),
            Limiting::Bucket => format!("limiter {}", self.rate),
            Limiting::Queue => format!("limiter {}", self.queue),
        };
        let (database, strategy) = (database.dialect(), self.strategy);
        let mut lines = format!(
            "sale {id}: {name}, {available} of {stock} left at {price}, {when}\n\
             {database}, strategy {strategy}, {limiter}"
        );
        if !strategy.is_safe() {
            lines += "\nthe naive strategy sells more than there is: only to see it happen";
        }
        if self.experiment {
            lines += "\nan experiment: whoever asks chooses the strategy and the limiter";
        }
        lines
    }
}

/// Prints that another sale is not over, in case the user only wants to restart the shop.
async fn remind(database: &Database) -> Result<(), Failed> {
    let sales = database.latest_sales().await?;
    if let Some(Sale { id, .. }) = sales.iter().find(|sale| sale.now < sale.closes_at) {
        eprintln!(
            "flash-sale: sale {id} is still on in this database; \
             to go on with it: --sale {id}, with the --secret that its links were signed with"
        );
    }
    Ok(())
}

/// Returns an address that a browser can open.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Returns a future that completes at the first signal to stop. A second signal stops the program at once.
pub(super) fn told_to_end() -> Result<impl Future<Output = ()> + Send + 'static, Failed> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        either(&mut interrupt, &mut terminate).await;
        tokio::spawn(async move {
            either(&mut interrupt, &mut terminate).await;
            std::process::exit(1);
        });
    })
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

/// Exits the program when its standard input is closed.
fn end_with_input() {
    // An error means the same as the end of the input.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    std::process::exit(1);
}

fn name(text: &str) -> Result<String, String> {
    match text.chars().count() {
        1..=200 => Ok(text.to_owned()),
        _ => Err("name: it has 1 to 200 characters".to_owned()),
    }
}

fn secret(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("secret: it is empty; leave it out for a random one".to_owned()),
        false => Ok(text.to_owned()),
    }
}
