//! Links and cookies that are signed with the shop's secret, so that they cannot be forged.
//!
//! The signed text is a purpose and its parts, each after its length. So 1 and 23 are not 12 and 3, and a signature for
//! one purpose is invalid for any other. Signatures are HMAC-SHA256 in hexadecimal digits. A signed text is compared as
//! a whole and in constant time with the one that the shop would write, so it has one spelling.

use std::fmt;

use axum::extract::Query;
use axum::http::Uri;
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;

/// The maximum time for which a link to buy is valid, in milliseconds.
pub const LONGEST: i64 = 15 * 60 * 1000;

/// The maximum length of a user name, in characters.
const LONGEST_USER: usize = 64;

/// The query parameters of a link to buy, without its signature.
#[derive(Deserialize)]
struct ToBuy {
    user: String,
    until: i64,
}

/// The query parameters of a link to pay, without its signature.
#[derive(Deserialize)]
struct ToPay {
    user: String,
}

/// Signs texts and verifies signatures. Clones have the same secret.
#[derive(Clone)]
pub struct Signer {
    key: hmac::Key,
}

impl Signer {
    /// Returns a signer with this secret.
    pub fn new(secret: &str) -> Signer {
        Signer { key: hmac::Key::new(HMAC_SHA256, secret.as_bytes()) }
    }

    /// Returns a signer with a random secret. Its signatures are valid until the end of this process.
    pub fn random() -> Signer {
        Signer::new(&format!("{}{}", new_number(), new_number()))
    }

    /// Returns the link by which this user buys, valid until this time of the database's clock.
    pub fn buy_url(&self, sale: i64, user: &str, until: i64) -> String {
        let sign = self.sign("buy", &[&sale.to_string(), user, &until.to_string()]);
        format!("/api/sales/{sale}/buy?user={user}&until={until}&sign={sign}")
    }

    /// Returns the user of a link to buy and the end of its validity, if the shop has made it, in this spelling.
    pub(crate) fn buyer_of(&self, sale: i64, link: &Uri) -> Option<(String, i64)> {
        let Query(ToBuy { user, until }) = Query::try_from_uri(link).ok()?;
        self.has_made(link, &user, &self.buy_url(sale, &user, until)).then_some((user, until))
    }

    /// Returns the link by which this user pays for an order.
    pub fn pay_url(&self, order: &str, user: &str) -> String {
        format!("/api/orders/{order}/pay?user={user}&sign={}", self.sign("pay", &[order, user]))
    }

    /// Returns the user of a link to pay, if the shop has made it, in this spelling.
    pub(crate) fn payer_of(&self, order: &str, link: &Uri) -> Option<String> {
        let Query(ToPay { user }) = Query::try_from_uri(link).ok()?;
        self.has_made(link, &user, &self.pay_url(order, &user)).then_some(user)
    }

    /// Returns the cookie of a visitor: the user name and its signature.
    pub fn visitor(&self, user: &str) -> String {
        format!("{user}.{}", self.sign("visitor", &[user]))
    }

    /// Returns the user name in a visitor's cookie, if its signature is valid.
    pub(crate) fn user_of<'a>(&self, cookie: &'a str) -> Option<&'a str> {
        let (user, _) = cookie.split_once('.')?;
        (is_name(user) && self.is_same(cookie, &self.visitor(user))).then_some(user)
    }

    /// Returns the token that opens the shopkeeper's page.
    pub fn keeper_token(&self) -> String {
        self.sign("keeper", &[])
    }

    /// Returns true if the token opens the shopkeeper's page.
    pub(crate) fn is_keeper(&self, token: &str) -> bool {
        self.is_same(token, &self.keeper_token())
    }

    /// Returns the cookie of the shopkeeper, valid until this time of the database's clock, so that a leaked one
    /// expires.
    pub(crate) fn keeper_visit(&self, until: i64) -> String {
        format!("{until}.{}", self.sign("keeper visit", &[&until.to_string()]))
    }

    /// Returns true if a cookie is that of the shopkeeper and valid at this time.
    pub(crate) fn is_keeper_visit(&self, cookie: &str, now: i64) -> bool {
        let until = cookie.split_once('.').and_then(|(until, _)| until.parse().ok());
        until.is_some_and(|until| now < until && self.is_same(cookie, &self.keeper_visit(until)))
    }

    /// Signs parts for a purpose; the signature is invalid for any other purpose.
    fn sign(&self, purpose: &str, parts: &[&str]) -> String {
        let tag = hmac::sign(&self.key, &message(purpose, parts));
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn has_made(&self, written: &Uri, user: &str, link: &str) -> bool {
        let written = written.path_and_query().map_or("", |written| written.as_str());
        is_name(user) && self.is_same(written, link)
    }

    /// Compares a text with a signed one. The time that this takes depends on neither: it compares their own
    /// signatures, in constant time.
    fn is_same(&self, text: &str, signed: &str) -> bool {
        let tag = hmac::sign(&self.key, signed.as_bytes());
        hmac::verify(&self.key, text.as_bytes(), tag.as_ref()).is_ok()
    }
}

impl fmt::Debug for Signer {
    // The secret is not shown.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Signer").finish_non_exhaustive()
    }
}

/// Returns an unpredictable, unique number: the name of a visitor, or the number of an order.
pub(crate) fn new_number() -> String {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    format!("{:032x}", u128::from_be_bytes(bytes))
}

/// Returns true if a text is a valid user name: it is written into URLs without encoding.
fn is_name(user: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LONGEST_USER).contains(&user.len()) && user.bytes().all(is_fine)
}

fn message(purpose: &str, parts: &[&str]) -> Vec<u8> {
    let mut message = Vec::with_capacity(128);
    for part in [purpose].iter().chain(parts) {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part.as_bytes());
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(link: &str) -> Uri {
        link.parse().unwrap()
    }

    #[test]
    fn a_link_is_good_for_its_sale_its_buyer_and_its_time_only() {
        let signer = Signer::new("secret");
        let link = signer.buy_url(1, "ana", 5);
        assert_eq!(signer.buyer_of(1, &uri(&link)), Some(("ana".to_owned(), 5)));
        for (sale, forged) in [
            (2, link.clone()),
            (2, link.replace("sales/1", "sales/2")),
            (1, link.replace("=ana", "=bob")),
            (1, link.replace("until=5", "until=6")),
        ] {
            assert_eq!(signer.buyer_of(sale, &uri(&forged)), None, "{forged} for sale {sale}");
        }
        assert_eq!(Signer::new("other").buyer_of(1, &uri(&link)), None);
        assert_eq!(Signer::random().buyer_of(1, &uri(&link)), None);
    }

    #[test]
    fn parts_that_read_the_same_in_a_row_are_not_the_same() {
        let signer = Signer::new("secret");
        let link = signer.buy_url(1, "23", 5);
        assert!(signer.buyer_of(1, &uri(&link)).is_some());
        let shifted = link.replace("sales/1", "sales/12").replace("=23", "=3");
        assert_eq!(signer.buyer_of(12, &uri(&shifted)), None);
        assert_ne!(message("pay", &["1", "23"]), message("pay", &["12", "3"]));
    }

    #[test]
    fn a_signature_for_one_purpose_is_good_for_no_other() {
        let signer = Signer::new("secret");
        for purpose in ["visitor", "buy", "keeper", "keeper visit"] {
            assert_ne!(signer.sign(purpose, &["ana"]), signer.sign("pay", &["ana"]), "{purpose}");
        }
    }

    #[test]
    fn a_forged_cookie_identifies_no_user() {
        let signer = Signer::new("secret");
        let cookie = signer.visitor("ana");
        assert_eq!(signer.user_of(&cookie), Some("ana"));
        let cut = &cookie[..cookie.len() - 1];
        for forged in ["", "ana", "ana.", "ana.00", ".", "bob.0", cut, &cookie.to_uppercase()] {
            assert_eq!(signer.user_of(forged), None, "{forged}");
        }
        assert_eq!(signer.user_of(&cookie.replace("ana", "bob")), None);
    }

    #[test]
    fn a_visit_of_the_shopkeeper_ends() {
        let signer = Signer::new("secret");
        let cookie = signer.keeper_visit(1000);
        assert!(signer.is_keeper_visit(&cookie, 999));
        assert!(!signer.is_keeper_visit(&cookie, 1000));
        for forged in [cookie.replace("1000", "2000"), cookie.replace("1000", "+1000"), "1000.".to_owned()] {
            assert!(!signer.is_keeper_visit(&forged, 0), "{forged}");
        }
        assert!(!signer.is_keeper_visit(&signer.keeper_token(), 0));
        assert!(!signer.is_keeper(&cookie));
    }

    #[test]
    fn a_name_that_would_change_an_address_is_no_user() {
        let signer = Signer::new("secret");
        for user in ["", "a&b", "a%20", &"x".repeat(65)] {
            assert_eq!(signer.payer_of("1", &uri(&signer.pay_url("1", user))), None, "{user}");
        }
        assert!(["a b", "ä"].into_iter().all(|user| !is_name(user)));
    }

    #[test]
    fn the_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Signer::new("hush")), "Signer { .. }");
    }
}
