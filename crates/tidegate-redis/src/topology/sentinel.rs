//! The topology with Sentinels: follows the primary that they report.
//!
//! The store subscribes to each Sentinel, and any event triggers a query of all of them. The report with the newest
//! configuration epoch is used, so a Sentinel that was cut off cannot restore an old primary. They are also queried
//! whenever the primary fails or reports that it is a replica. A new primary is used only after it has confirmed its
//! role.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::{PushInfo, PushKind};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::view::{KnownView, ask_sentinel, believed};
use super::{BETWEEN_LOOKS, Health, health_of, jittered};
use crate::background::go_on;
use crate::dial::Dialer;
use crate::fault::Fault;
use crate::link::{Link, LinkContext};
use crate::url::Address;

/// The timeout of a Sentinel.
const TIMEOUT: Duration = Duration::from_millis(500);
/// The pause before reconnecting to a lost Sentinel.
const BEFORE_CALLING_AGAIN: Duration = Duration::from_millis(500);
/// The interval between queries while the primary is down.
const WHILE_DOWN: Duration = Duration::from_millis(100);
/// The interval between queries in normal operation. Events make it unnecessary in most cases; it covers a lost
/// subscription.
const NOW_AND_THEN: Duration = Duration::from_secs(10);

/// The Sentinels of a service, and the primary that they report. Sentinels have connections of their own, apart from
/// those of decisions.
#[derive(Debug)]
pub(crate) struct Sentinels {
    /// The Sentinels of the URL. Others are not discovered.
    sentinels: Vec<Address>,
    /// The name of the watched service.
    service: String,
    /// The connector with the credentials for Sentinels.
    dialer: Arc<Dialer>,
    /// The context of links to primaries.
    trunk: Arc<LinkContext>,
    /// The primary in use.
    named: watch::Sender<Named>,
    /// The newest configuration epoch that any Sentinel reported.
    epoch: Mutex<u64>,
}

/// The result of the queries so far.
#[derive(Clone, Debug)]
enum Named {
    /// No Sentinel was queried yet.
    Unknown,
    /// No Sentinel reports a primary, for this reason.
    Missing(Arc<str>),
    /// A reported primary, with the link to it. It may be down.
    Primary(Arc<Link>),
}

impl Sentinels {
    /// Starts one task that queries all Sentinels, and one per Sentinel that subscribes to it. The tasks end when the
    /// value is dropped.
    pub(super) fn new(
        (sentinels, service): (&[Address], &str),
        dialer: Dialer,
        trunk: &Arc<LinkContext>,
    ) -> Arc<Sentinels> {
        let (named, _) = watch::channel(Named::Unknown);
        let this = Arc::new(Sentinels {
            sentinels: sentinels.to_vec(),
            service: service.to_owned(),
            dialer: Arc::new(dialer),
            trunk: trunk.clone(),
            named,
            epoch: Mutex::new(0),
        });
        for address in sentinels {
            let (weak, address) = (Arc::downgrade(&this), address.clone());
            go_on(&trunk.handle, move || listen(weak.clone(), address.clone()));
        }
        let weak = Arc::downgrade(&this);
        go_on(&trunk.handle, move || follow(weak.clone()));
        this
    }

    /// Returns the link to the primary. Waits only before the first query has ended.
    pub(super) async fn primary(&self) -> Result<Arc<Link>, Fault> {
        let mut named = self.named.subscribe();
        let known = named.wait_for(|named| !matches!(named, Named::Unknown)).await;
        match known.as_deref() {
            Ok(Named::Primary(link)) => Ok(link.clone()),
            Ok(Named::Missing(why)) => Err(Fault::Down(why.to_string())),
            Ok(Named::Unknown) | Err(_) => Err(Fault::Down("the Sentinels were not reached".to_owned())),
        }
    }

    /// Returns the link to the primary, if one is known.
    pub(super) fn primary_now(&self) -> Option<Arc<Link>> {
        match &*self.named.borrow() {
            Named::Primary(link) => Some(link.clone()),
            Named::Unknown | Named::Missing(_) => None,
        }
    }

    /// Resolves when the primary is up or down, or no Sentinel reports one.
    pub(super) async fn settled(&self) {
        if let Ok(link) = self.primary().await {
            link.settled().await;
        }
    }

    /// Returns the availability of the primary. Unreachable Sentinels are not a fault while it answers.
    pub(super) fn health(&self) -> Health {
        match &*self.named.borrow() {
            Named::Primary(link) => health_of(link),
            Named::Missing(why) => Health { is_up: false, what: why.to_string() },
            Named::Unknown => Health { is_up: false, what: "the Sentinels were not reached yet".to_owned() },
        }
    }

    /// Queries all Sentinels, and uses the primary with the newest configuration epoch. All are queried concurrently.
    /// The epoch is remembered even if its primary is the one in use, so that older reports stay rejected.
    async fn look(&self) {
        // One slow Sentinel must not delay the others.
        let mut asked = tokio::task::JoinSet::new();
        for address in &self.sentinels {
            let (dialer, address, service) = (self.dialer.clone(), address.clone(), self.service.clone());
            asked.spawn(async move {
                match timeout(TIMEOUT, ask_sentinel(&dialer, &address, &service)).await {
                    Ok(answer) => answer,
                    Err(_) => Err(format!("{address}: no answer")),
                }
            });
        }
        let (mut views, mut why) = (Vec::new(), String::new());
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(view)) => views.push(view),
                Ok(Err(error)) => why = error,
                Err(_) => {}
            }
        }
        if views.is_empty() {
            // Without a report, the last reported primary stays in use.
            self.named.send_if_modified(|named| {
                let is_news = !matches!(named, Named::Primary(_));
                if is_news {
                    *named = Named::Missing(format!("no Sentinel names a primary: {why}").into());
                }
                is_news
            });
        }
        // The lock is released before the link changes.
        let primary = {
            let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
            let known = KnownView { epoch: *epoch, is_up: self.is_up(), sentinels: self.sentinels.len() };
            let believed = believed(&views, &known);
            *epoch = believed.map_or(*epoch, |view| view.epoch);
            believed.map(|view| view.primary.clone())
        };
        if let Some(primary) = primary {
            self.adopt(primary);
        }
    }

    /// Replaces the link if the address has changed. The old link is closed when its last request has ended. The new
    /// link has to confirm the role of its server before requests use it.
    fn adopt(&self, primary: Address) {
        self.named.send_if_modified(|named| {
            // The same primary keeps its link, and with it the connection.
            let is_same = matches!(named, Named::Primary(link) if link.address == primary);
            if !is_same {
                *named = Named::Primary(Link::new(primary, &self.trunk));
            }
            !is_same
        });
    }

    /// Returns true if the primary in use is connected.
    fn is_up(&self) -> bool {
        matches!(&*self.named.borrow(), Named::Primary(link) if link.is_up())
    }
}

/// Queries the Sentinels when notified, and at intervals. The first query is made at once.
async fn follow(sentinels: Weak<Sentinels>) {
    loop {
        let Some(held) = sentinels.upgrade() else { return };
        held.look().await;
        let pause = if held.is_up() { NOW_AND_THEN } else { WHILE_DOWN };
        let trunk = held.trunk.clone();
        drop(held);
        sleep(jittered(BETWEEN_LOOKS)).await;
        // A notification is handled immediately; otherwise the pause elapses.
        let _ = timeout(jittered(pause), trunk.doubts.notified()).await;
    }
}

/// Subscribes to one Sentinel for the lifetime of the store. The content of the message is not used: it only triggers a
/// query, so a forged or late message does no harm.
async fn listen(sentinels: Weak<Sentinels>, address: Address) {
    loop {
        let Some(held) = sentinels.upgrade() else { return };
        let (trunk, dialer) = (held.trunk.clone(), held.dialer.clone());
        drop(held);
        // The channel reports the end of this connection only.
        let (gone, mut is_gone) = watch::channel(false);
        let hears = move |heard: PushInfo| {
            match heard.kind {
                PushKind::Message => trunk.doubts.notify_one(),
                PushKind::Disconnection => {
                    gone.send_replace(true);
                }
                _ => {}
            }
            Ok::<(), ()>(())
        };
        if let Ok(mut connection) = dialer.connect(&address, hears).await {
            // The event is published when a failover has chosen a new primary.
            if connection.subscribe("+switch-master").await.is_ok() {
                // A query covers events from before the subscription.
                let Some(held) = sentinels.upgrade() else { return };
                held.trunk.doubts.notify_one();
                drop(held);
                let _ = is_gone.wait_for(|gone| *gone).await;
            }
        }
        // The pause also applies after a lost connection, so that a failing Sentinel is not flooded.
        sleep(jittered(BEFORE_CALLING_AGAIN)).await;
    }
}
