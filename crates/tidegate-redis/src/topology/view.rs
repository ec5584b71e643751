//! The configuration reported by a Sentinel, and the choice between several reports.

use redis::{PushInfo, Value};

use crate::dial::Dialer;
use crate::fault::describe;
use crate::url::Address;

/// The known state before Sentinels are asked again. It decides which reports can be rejected as old.
pub(super) struct KnownView {
    /// The newest configuration epoch that any Sentinel reported.
    pub(super) epoch: u64,
    /// True if the primary of that epoch is connected.
    pub(super) is_up: bool,
    /// The number of Sentinels in the URL, of which a majority is counted.
    pub(super) sentinels: usize,
}

/// Returns the report to follow: the one with the newest configuration epoch. An epoch older than a known one is
/// accepted only if the primary is down and a majority of Sentinels agree; they have then been reset.
pub(super) fn believed<'a>(views: &'a [View], known: &KnownView) -> Option<&'a View> {
    let newest = views.iter().max_by_key(|view| view.epoch)?;
    let agreeing = views.iter().filter(|view| view.primary == newest.primary).count();
    let have_begun_anew = 2 * agreeing > known.sentinels && !known.is_up;
    (newest.epoch >= known.epoch || have_begun_anew).then_some(newest)
}

/// The configuration reported by a Sentinel. The pair comes from two commands, so it may be inconsistent during a
/// failover; see [`ask_sentinel`].
#[derive(Debug)]
pub(crate) struct View {
    /// The reported primary.
    pub(crate) primary: Address,
    /// The configuration epoch, which increases with each failover.
    pub(super) epoch: u64,
}

/// Queries one Sentinel over a new connection. The error is a message with a remedy.
pub(crate) async fn ask_sentinel(dialer: &Dialer, sentinel: &Address, service: &str) -> Result<View, String> {
    let deaf = |_: PushInfo| Ok::<(), ()>(());
    let wrong = |error| describe(sentinel, &error);
    let mut connection = dialer.connect(sentinel, deaf).await.map_err(wrong)?;
    let mut question = redis::cmd("SENTINEL");
    question.arg("MASTER").arg(service);
    let fields = match connection.send_packed_command(&question).await.map_err(wrong)? {
        Value::ServerError(error) if error.details().is_some_and(|text| text.contains("No such master")) => {
            return Err(format!("{sentinel} watches no service {service:?}; correct its name in the URL"));
        }
        Value::ServerError(error) => {
            let text = error.details().unwrap_or_default();
            return Err(format!("{sentinel}: {} {text}", error.code()));
        }
        Value::Map(pairs) => pairs.into_iter().map(|(name, value)| (text_of(name), text_of(value))).collect(),
        Value::Array(parts) => pairs_of(parts),
        _ => Vec::new(),
    };
    let epoch =
        fields.iter().find(|(name, _)| name == "config-epoch").and_then(|(_, epoch)| epoch.parse().ok());
    // During a failover its leader reports the new epoch with the old address in `SENTINEL MASTER`, until all replicas
    // have followed. This command returns the new address at once. The address is read last: a new address with an old
    // epoch does no harm.
    let mut question = redis::cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(service);
    let primary = match connection.send_packed_command(&question).await.map_err(wrong)? {
        Value::Array(parts) => pairs_of(parts).pop(),
        _ => None,
    };
    let view = || {
        let (host, port) = primary?;
        Some(View { primary: Address { host, port: port.parse().ok()? }, epoch: epoch? })
    };
    view()
        .ok_or_else(|| format!("{sentinel}: its answer about {service:?} makes no sense; is it a Sentinel?"))
}

/// Groups a flat list into pairs. An odd last element is dropped.
fn pairs_of(parts: Vec<Value>) -> Vec<(String, String)> {
    let mut parts = parts.into_iter().map(text_of);
    std::iter::from_fn(|| Some((parts.next()?, parts.next()?))).collect()
}

/// Returns a value as text; empty for other types.
fn text_of(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::SimpleString(text) => text,
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn views(reported: &[(u16, u64)]) -> Vec<View> {
        let view = |(port, epoch): &(u16, u64)| View {
            primary: Address { host: "h".into(), port: *port },
            epoch: *epoch,
        };
        reported.iter().map(view).collect()
    }

    fn port(reported: &[(u16, u64)], epoch: u64, is_up: bool) -> Option<u16> {
        believed(&views(reported), &KnownView { epoch, is_up, sentinels: 3 }).map(|view| view.primary.port)
    }

    #[test]
    fn the_newest_configuration_counts() {
        assert_eq!(port(&[(1, 4), (2, 5), (1, 4)], 4, true), Some(2));
        assert_eq!(port(&[(1, 4), (1, 4)], 4, true), Some(1));
        assert_eq!(port(&[], 0, false), None);
    }

    #[test]
    fn a_sentinel_that_was_cut_off_restores_no_old_primary() {
        assert_eq!(port(&[(1, 4)], 5, true), None);
        assert_eq!(port(&[(1, 4)], 5, false), None, "one of three is not most of them");
        assert_eq!(port(&[(1, 4), (1, 4), (1, 4)], 5, true), None, "what decides is not left");
    }

    #[test]
    fn sentinels_that_have_begun_anew_are_believed_when_nothing_can_be_lost() {
        assert_eq!(port(&[(2, 0), (2, 0)], 5, false), Some(2));
        assert_eq!(port(&[(2, 0), (1, 0), (2, 1)], 5, false), Some(2));
    }
}
