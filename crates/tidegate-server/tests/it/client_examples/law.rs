//! The behavior that every example has.

use std::cell::Cell;
use std::path::PathBuf;

use super::caller::{Caller, REFILL, Reply, TIMEOUT};
use super::example::{Example, Front, folder};
use super::place::{Place, TOKEN};

/// The limit of the examples, `5/60s`.
const LIMIT: u64 = 5;
const REFILL_SECONDS: u64 = REFILL.as_secs();

/// A timeout of the example that does not expire while the server replies, in milliseconds.
const LONG: &str = "60000";
const LONGEST: u32 = 60_000;
/// A timeout that expires soon, for a server that never replies.
const SHORTEST: u32 = 200;

/// Runs every check with an example.
pub(super) fn holds(example: &'static Example) {
    let mut tested = Tested::new(example);
    tested.place.start();
    let closed = tested.start("closed", LONG);
    tested.limits(&closed);
    tested.has_no_choice_of_its_key(&closed);
    tested.denies_as_a_rule_does(&closed);
    tested.decides_about_errors_itself();
    tested.spends_once_if_a_reply_is_lost();

    tested.place.kill();
    let open = tested.start("open", LONG);
    tested.is_without_server(&open, &closed);
    tested.place.start();
    tested.finds_the_server(&open, &closed);
    // Now the other one has a connection to lose, too.
    tested.place.kill();
    tested.is_without_server(&open, &closed);
    tested.place.start();
    tested.finds_the_server(&open, &closed);
    drop((open, closed));

    tested.does_not_wait_for_a_server_that_hangs();
    tested.takes_a_full_server_for_one_that_is_down();
}

/// An example, its server and its folder.
struct Tested {
    example: &'static Example,
    place: Place,
    folder: PathBuf,
    /// The last client that was used. Each check has a client of its own.
    client: Cell<u8>,
}

impl Tested {
    /// Compiles an example. The server does not run yet.
    fn new(example: &'static Example) -> Tested {
        let folder = folder(example.name);
        example.build(&folder);
        Tested { example, place: Place::new(example.name), folder, client: Cell::new(1) }
    }

    fn start(&self, fail: &str, timeout: &str) -> Caller {
        self.start_with(TOKEN, fail, timeout, None)
    }

    fn start_with(
        &self,
        token: &str,
        fail: &str,
        timeout: &str,
        further: Option<(&'static str, String)>,
    ) -> Caller {
        let settings = [("TIDEGATE_TOKEN", token), ("TIDEGATE_FAIL", fail), ("TIDEGATE_TIMEOUT_MS", timeout)];
        let settings = settings.map(|(name, value)| (name, value.to_owned()));
        let variables = self.place.addresses().into_iter().chain(settings).chain(further).collect();
        Caller::start(self.example, &self.folder, variables)
    }

    /// Returns a client that has sent no request yet.
    fn client(&self) -> u8 {
        let next =
            self.client.get().checked_add(1).expect("this machine is too slow for a check of a few requests");
        self.client.set(next);
        next
    }

    /// Runs a check with a new client. A check of which a unit may have refilled is repeated.
    fn in_time(&self, check: impl Fn(u8) -> Vec<Reply>) -> Vec<Reply> {
        loop {
            let begin = testbed::now();
            let replies = check(self.client());
            if begin.elapsed() < REFILL {
                return replies;
            }
        }
    }

    /// The limit allows five requests of each client, with right header fields.
    fn limits(&self, caller: &Caller) {
        let replies = self.in_time(|client| (0..=LIMIT).map(|_| caller.ask(client)).collect());
        let (denied, allowed) = replies.split_last().expect("there are six");
        for (nth, reply) in (0..).zip(allowed) {
            assert!(reply.status == 200 && reply.is_served(), "{nth}: {reply:?}");
            let seconds = self.seconds(reply, LIMIT - 1 - nth);
            // The quota is full again when the units of all requests have refilled.
            assert!(
                (nth * REFILL_SECONDS + 1..=(nth + 1) * REFILL_SECONDS).contains(&seconds),
                "{nth}: {reply:?}"
            );
            assert_eq!(reply.field("retry-after"), None, "{nth}: {reply:?}");
        }
        assert!(denied.status == 429 && !denied.is_served(), "{denied:?}");
        let seconds = self.seconds(denied, 0);
        assert!((1..=REFILL_SECONDS).contains(&seconds), "{denied:?}");
        assert_eq!(denied.field("retry-after"), Some(&*seconds.to_string()), "{denied:?}");
    }

    /// Returns `t` of a reply with this remaining quota.
    fn seconds(&self, reply: &Reply, remaining: u64) -> u64 {
        let (name, parameters) = self.example.policy;
        assert_eq!(reply.field("ratelimit-policy"), Some(&*format!("\"{name}\";{parameters}")), "{reply:?}");
        let field = reply.field("ratelimit").unwrap_or_default();
        let seconds = field.strip_prefix(&format!("\"{name}\";r={remaining};t="));
        seconds.and_then(|seconds| seconds.parse().ok()).unwrap_or_else(|| panic!("r={remaining}: {reply:?}"))
    }

    /// Clients are counted apart, and by their address: a header field cannot change it.
    fn has_no_choice_of_its_key(&self, caller: &Caller) {
        let replies = self.in_time(|client| {
            let spoofed = |nth| caller.ask_for(client, "/", &format!("X-Forwarded-For: 192.0.2.{nth}\r\n"));
            let mut replies: Vec<_> = (0..=LIMIT).map(spoofed).collect();
            replies.push(caller.ask(self.client()));
            replies
        });
        let statuses: Vec<_> = replies.iter().map(|reply| reply.status).collect();
        assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 200], "{replies:?}");
        self.seconds(&replies[6], LIMIT - 1);
    }

    /// A rule that always denies has no time to retry.
    fn denies_as_a_rule_does(&self, caller: &Caller) {
        if !self.example.asks_by_rules() {
            return;
        }
        for path in ["/closed", "//closed", "/%63losed?x=1"] {
            let reply = caller.ask_for(self.client(), path, "");
            assert_eq!((reply.status, reply.field("retry-after")), (403, None), "{path}: {reply:?}");
            assert!(!reply.is_served() && !reply.is_counted(), "{path}: {reply:?}");
        }
    }

    /// An error reply is not a server that is down: no setting allows the request.
    fn decides_about_errors_itself(&self) {
        for (token, is_valid) in [("wrong", false), ("", false), (TOKEN, true)] {
            let caller = self.start_with(token, "open", LONG, None);
            let reply = caller.ask(self.client());
            assert_eq!(
                (reply.status == 500, reply.is_served()),
                (!is_valid, is_valid),
                "{token:?}: {reply:?}"
            );
        }
    }

    /// A take whose reply is lost has been spent. A client that repeats it would spend twice.
    fn spends_once_if_a_reply_is_lost(&self) {
        let (proxy, address) = self.place.proxy(self.example.front);
        let caller = self.start_with(TOKEN, "closed", LONG, Some(address));
        let replies = self.in_time(|client| {
            // Many clients repeat a request only on a connection that was used before.
            let before = caller.ask(client);
            match self.example.front {
                Front::Resp => {
                    proxy.only_for(&["CL.THROTTLE", "TG.TAKE", "TG.ADMIT"]);
                    proxy.eat_replies(1, testbed::Afterwards::Cut);
                }
                Front::Http => proxy.cut_after(testbed::Direction::Replies, 0),
            }
            let lost = caller.ask(client);
            let counted = || Some(caller.ask(client)).filter(Reply::is_counted);
            vec![before, lost, testbed::until("a connection after the lost one", TIMEOUT, counted)]
        });
        assert!(replies[0].is_served(), "{replies:?}");
        is_down(&replies[1], false);
        self.seconds(&replies[2], LIMIT - 3);
    }

    /// Without a server an example allows or denies, as configured.
    fn is_without_server(&self, open: &Caller, closed: &Caller) {
        for (caller, is_open) in [(open, true), (closed, false)] {
            for _ in 0..=LIMIT {
                is_down(&caller.ask(self.client.get()), is_open);
            }
        }
    }

    /// After a restart of the server an example limits again.
    fn finds_the_server(&self, open: &Caller, closed: &Caller) {
        for caller in [open, closed] {
            let is_counted = || caller.ask(self.client.get()).is_counted().then_some(());
            testbed::until("the example finds the server", TIMEOUT, is_counted);
            self.limits(caller);
        }
    }

    /// A server that accepts connections and never replies is down after the timeout.
    fn does_not_wait_for_a_server_that_hangs(&self) {
        for (fail, is_open) in [("open", true), ("closed", false)] {
            let (caller, timeout) = self.start_hasty(fail);
            self.place.hang();
            for _ in 0..3 {
                is_down(&caller.ask(self.client.get()), is_open);
            }
            // One that is started now finds no server, either.
            is_down(&self.start(fail, &timeout).ask(self.client.get()), is_open);
            self.place.go_on();
            let is_counted = || caller.ask(self.client.get()).is_counted().then_some(());
            testbed::until("the example finds the server again", TIMEOUT, is_counted);
        }
    }

    /// Starts an example with a timeout that is as short as this machine allows. The server has replied to it in time.
    fn start_hasty(&self, fail: &str) -> (Caller, String) {
        let mut timeout = SHORTEST;
        loop {
            let caller = self.start(fail, &timeout.to_string());
            // The first requests make the connection, and compile.
            if (0..20).any(|_| caller.ask(self.client.get()).is_counted()) {
                return (caller, timeout.to_string());
            }
            timeout *= 2;
            assert!(timeout <= LONGEST, "the server does not reply within {LONGEST} ms");
        }
    }

    /// A server with too many connections replies an error, and the request is not at fault.
    fn takes_a_full_server_for_one_that_is_down(&mut self) {
        let _only = self.place.fill();
        for (fail, is_open) in [("open", true), ("closed", false)] {
            is_down(&self.start(fail, LONG).ask(self.client.get()), is_open);
        }
    }
}

/// Checks the reply of an example whose server is down.
fn is_down(reply: &Reply, is_open: bool) {
    let (status, retry_after) = if is_open { (200, None) } else { (503, Some("1")) };
    assert_eq!((reply.status, reply.field("retry-after")), (status, retry_after), "{reply:?}");
    assert_eq!((reply.is_served(), reply.is_counted()), (is_open, false), "{reply:?}");
}
