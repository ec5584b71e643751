//! `flash-sale serve`: runs a shop until it is stopped.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::{io, thread};

use clap::{Args, value_parser};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{DatabaseArgument, Failed, values};
use crate::database::Database;
use crate::hint::Hint;
use crate::http::{self, App, Settings, span};
use crate::limits::Limiting;
use crate::link::Signer;
use crate::sale::{NewSale, Sale};
use crate::shop::Shop;

/// The arguments of `serve`.
#[derive(Args, Debug)]
pub(super) struct ServeArguments {
    #[command(flatten)]
    books: DatabaseArgument,
    /// The maximum number of connections to the database.
    #[arg(long, default_value_t = 20, value_parser = value_parser!(u32).range(1..=1000))]
    connections: u32,
    /// The address to listen on; port 0 is a free one.
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Sells this sale of the database, in place of a new one.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["stock", "name", "price_cents", "opens_in", "lasts", "pay_within"])]
    sale: Option<i64>,
    #[command(flatten)]
    new: NewSale,
    #[command(flatten)]
    settings: Settings,
    /// The Redis server of the strategy redis; it may fail at any time.
    #[arg(long, env = "REDIS_URL", hide_env_values = true, value_name = "URL")]
    redis: Option<String>,
    /// The secret that signs links; without it they are valid until the shop stops.
    #[arg(long, env = "FLASH_SALE_SECRET", hide_env_values = true, value_parser = secret)]
    secret: Option<String>,
    /// Exits when its standard input is closed: for programs that start it.
    #[arg(long, hide = true)]
    while_input: bool,
}

pub(super) async fn run(arguments: ServeArguments) -> Result<ExitCode, Failed> {
    if arguments.while_input {
        // It has a thread of its own, so that the program can exit without it.
        thread::spawn(end_with_input);
    }
    let shutdown = shutdown_signal()?;
    let hint = arguments.redis.as_deref().map(Hint::connect).transpose()?;
    let database = Database::open(&arguments.books.database, arguments.connections).await?;
    database.warm_up().await;
    let sale = arguments.sale(&database).await?;
    let shop = Shop { hint, ..Shop::new(database.clone()) };
    let signer = arguments.secret.as_deref().map_or_else(Signer::random, Signer::new);
    let token = signer.keeper_token();
    let settings = Settings { signer, sale: Some(sale.id), ..arguments.settings.clone() };
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
    /// Returns the requested sale, or a new one.
    async fn sale(&self, database: &Database) -> Result<Sale, Failed> {
        let id = match self.sale {
            Some(id) => id,
            None => {
                remind(database).await?;
                database.create_sale(&self.new).await?
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
        let limiter = match self.settings.limiting {
            Limiting::Off => "no limiter".to_owned(),
            Limiting::Bucket => format!("limiter {}", self.settings.rate),
            Limiting::Queue => format!("limiter {}", self.settings.queue),
        };
        let (database, strategy) = (database.dialect(), self.settings.strategy);
        let mut lines = format!(
            "sale {id}: {name}, {available} of {stock} left at {price}, {when}\n\
             {database}, strategy {strategy}, {limiter}"
        );
        if !strategy.is_safe() {
            lines += "\nthe naive strategy sells more than there is: only to see it happen";
        }
        if self.settings.is_experiment {
            lines += "\nan experiment: each request may choose the strategy and the limiter";
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
pub(super) fn shutdown_signal() -> Result<impl Future<Output = ()> + Send + 'static, Failed> {
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

fn secret(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("secret: it is empty; leave it out for a random one".to_owned()),
        false => Ok(text.to_owned()),
    }
}
