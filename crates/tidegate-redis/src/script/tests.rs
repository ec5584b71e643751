//! Tests of the scripts on a real server: their decisions equal those of the library, and their states are correct.

mod library;
mod limits;
mod shapes;
mod world;

use redis::{Connection, Value};
use testbed::{Flavour, Redis};
use tidegate_core::{Ask, Decision, Subject};

use super::{
    AskReply, Bid, Call, StateName, TakeAsk, TakeRecord, TakeReply, Target, Time, Unreadable, all, read_peek,
    read_take, read_takes,
};

pub(super) const PREFIX: &[u8] = b"tg:";

/// Returns the state of a key.
pub(super) fn target(subject: &Subject<'_>) -> Target {
    Target::new(PREFIX, &subject.prepared_limit(), subject.key()).expect("it can be held")
}

/// Returns bids under limits without predecessors.
pub(super) fn bids(asks: &[(Subject<'_>, Ask)]) -> Vec<Bid> {
    asks.iter().map(|(subject, ask)| Bid::new(target(subject), *ask)).collect()
}

/// Builds the call of one ask.
pub(super) fn take(bids: Vec<Bid>, time: Time) -> Call {
    super::take(&[TakeAsk::new(bids.into())], time)
}

/// Returns the decisions, and the data needed to give each take back.
pub(super) fn decided(
    reply: Value,
    asks: &[(Subject<'_>, Ask)],
) -> Result<(Vec<Decision>, Vec<Option<TakeRecord>>), Unreadable> {
    let reply = read_takes(reply, std::iter::once(asks.len()))?.remove(0);
    decided_ask(&reply.expect("no error"), asks)
}

/// Returns the same for one of several asks.
pub(super) fn decided_ask(
    reply: &AskReply,
    asks: &[(Subject<'_>, Ask)],
) -> Result<(Vec<Decision>, Vec<Option<TakeRecord>>), Unreadable> {
    match read_take(reply, &bids(asks))? {
        TakeReply::Decided(decided) => {
            Ok(decided.bids.into_iter().map(|bid| (bid.decision, bid.taken)).unzip())
        }
        TakeReply::Unknown { .. } => panic!("nothing has to be known"),
    }
}

/// Returns the decision about each bid, without spending.
pub(super) fn seen(reply: Value, asks: &[(Subject<'_>, Ask)]) -> Result<Vec<Decision>, Unreadable> {
    let (now, states) = read_peek(reply, &bids(asks))?;
    let each = bids(asks).into_iter().zip(&states);
    Ok(each.map(|(bid, state)| bid.target.limit.peek(state, now, bid.ask)).collect())
}

/// A server, and a connection with all scripts loaded.
pub(super) struct Server {
    _redis: Redis,
    pub(super) connection: Connection,
}

impl Server {
    pub(super) fn start(flavour: Flavour) -> Server {
        let redis = Redis::start(flavour);
        let client = redis::Client::open(redis.url()).expect("a url");
        let mut connection = client.get_connection().expect("a connection");
        for script in all() {
            let sha: String = redis::cmd("SCRIPT")
                .arg("LOAD")
                .arg(&script.text)
                .query(&mut connection)
                .expect(&script.text);
            assert_eq!(sha, script.sha);
        }
        Server { _redis: redis, connection }
    }

    pub(super) fn command(&mut self, words: &[&[u8]]) -> Result<Value, String> {
        let (name, arguments) = words.split_first().expect("a command");
        let mut command = redis::cmd(std::str::from_utf8(name).expect("a name"));
        for word in arguments {
            command.arg(*word);
        }
        command.query(&mut self.connection).map_err(|error| error.to_string())
    }

    /// Runs one call.
    pub(super) fn run(&mut self, call: &Call) -> Result<Value, String> {
        command_of(call).query(&mut self.connection).map_err(|error| error.to_string())
    }

    /// Deletes keys and runs a call, many times in one round trip.
    pub(super) fn run_all(&mut self, calls: &[(Vec<StateName>, Call)]) -> Vec<Value> {
        let mut pipeline = redis::pipe();
        for (forgotten, call) in calls {
            if !forgotten.is_empty() {
                pipeline.cmd("DEL");
                forgotten.iter().for_each(|name| {
                    pipeline.arg(&**name);
                });
                pipeline.ignore();
            }
            pipeline.add_command(command_of(call));
        }
        pipeline.query(&mut self.connection).expect("answers")
    }
}

/// Sends the text of the script, so that the server need not have it. Hashing a short text is cheap.
fn command_of(call: &Call) -> redis::Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(&call.script.text).arg(call.keys.len());
    call.keys.iter().for_each(|key| {
        command.arg(&**key);
    });
    call.arguments.iter().for_each(|argument| {
        command.arg(argument);
    });
    command
}
