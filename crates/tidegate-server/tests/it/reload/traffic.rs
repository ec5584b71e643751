//! Clients that keep one connection across reloads.

use crate::wire::http::Talk;
use crate::wire::resp::Client;

use super::place::Place;

/// One connection, opened once.
pub(super) enum Asker {
    Resp(Client),
    Http(Talk),
}

impl Asker {
    /// Opens a connection to each front.
    pub(super) fn each(place: &Place) -> [Asker; 2] {
        let resp = Client::connect(place.address("resp"));
        [Asker::Resp(resp), Asker::Http(Talk::at(place.address("http")))]
    }

    /// Returns true if this user is allowed on the path `/{name}`. Panics if the connection is closed.
    pub(super) fn admits(&mut self, name: &str, user: &str) -> bool {
        match self {
            Asker::Resp(client) => {
                client.say(&format!("TG.ADMIT path /{name} user {user}")).number("allowed") == 1
            }
            Asker::Http(talk) => {
                let body = format!(r#"{{"attributes":{{"path":"/{name}","user":"{user}"}}}}"#);
                let answer = talk.post("/v1/admit", &body);
                assert!([200, 403, 429].contains(&answer.status), "{answer:?}");
                answer.status == 200
            }
        }
    }
}
