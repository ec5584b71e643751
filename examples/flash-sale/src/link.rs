//! Links and cookies that are signed with the shop's secret, so that they cannot be forged.
//!
//! The signed text is a purpose and its parts, each after its length. So 1 and 23 are not 12 and 3, and a signature for
//! one purpose is invalid for any other. Signatures are HMAC-SHA256 in hexadecimal digits, compared in constant time.

use std::fmt;

use ring::hmac::{self, HMAC_SHA256};

use crate::order::new_number;

/// The maximum time for which a link to buy is valid, in milliseconds.
pub const LONGEST: i64 = 15 * 60 * 1000;

/// The maximum length of a user name, in characters.
const LONGEST_USER: usize = 64;

/// The purpose of a signature, which makes it invalid for any other purpose.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Visitor,
    Buy,
    Pay,
    Keeper,
    KeeperVisit,
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
        let sign = self.sign(Purpose::Buy, &[&sale.to_string(), user, &until.to_string()]);
        format!("/api/sales/{sale}/buy?user={user}&until={until}&sign={sign}")
    }

    /// Returns true if the shop has made this link, whether or not it has expired.
    pub(crate) fn has_made_buy_url(&self, sale: i64, user: &str, (until, sign): (i64, &str)) -> bool {
        is_name(user) && self.knows(Purpose::Buy, &[&sale.to_string(), user, &until.to_string()], sign)
    }

    /// Returns the link by which this user pays for an order.
    pub fn pay_url(&self, order: &str, user: &str) -> String {
        format!("/api/orders/{order}/pay?user={user}&sign={}", self.sign(Purpose::Pay, &[order, user]))
    }

    /// Returns true if the shop has made this link.
    pub(crate) fn has_made_pay_url(&self, order: &str, user: &str, sign: &str) -> bool {
        is_name(user) && self.knows(Purpose::Pay, &[order, user], sign)
    }

    /// Returns the cookie of a visitor: the user name and its signature.
    pub fn visitor(&self, user: &str) -> String {
        format!("{user}.{}", self.sign(Purpose::Visitor, &[user]))
    }

    /// Returns the user name in a visitor's cookie, if its signature is valid.
    pub(crate) fn user_of<'a>(&self, cookie: &'a str) -> Option<&'a str> {
        let (user, sign) = cookie.split_once('.')?;
        (is_name(user) && self.knows(Purpose::Visitor, &[user], sign)).then_some(user)
    }

    /// Returns the token that opens the shopkeeper's page.
    pub fn keeper_token(&self) -> String {
        self.sign(Purpose::Keeper, &[])
    }

    /// Returns true if the token opens the shopkeeper's page.
    pub(crate) fn is_keeper(&self, token: &str) -> bool {
        self.knows(Purpose::Keeper, &[], token)
    }

    /// Returns the cookie of the shopkeeper, valid until this time of the database's clock, so that a leaked one
    /// expires.
    pub(crate) fn keeper_visit(&self, until: i64) -> String {
        format!("{until}.{}", self.sign(Purpose::KeeperVisit, &[&until.to_string()]))
    }

    /// Returns true if a cookie is that of the shopkeeper and valid at this time.
    pub(crate) fn is_keeper_visit(&self, cookie: &str, now: i64) -> bool {
        let Some((until, sign)) = cookie.split_once('.') else { return false };
        self.knows(Purpose::KeeperVisit, &[until], sign)
            && until.parse::<i64>().is_ok_and(|until| now < until)
    }

    fn sign(&self, purpose: Purpose, parts: &[&str]) -> String {
        let tag = hmac::sign(&self.key, &message(purpose, parts));
        tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn knows(&self, purpose: Purpose, parts: &[&str], sign: &str) -> bool {
        let Some(tag) = bytes_of(sign) else { return false };
        hmac::verify(&self.key, &message(purpose, parts), &tag).is_ok()
    }
}

impl fmt::Debug for Signer {
    // The secret is not shown.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Signer").finish_non_exhaustive()
    }
}

/// Returns the name of a new visitor.
pub(crate) fn new_visitor() -> String {
    new_number()
}

/// Returns true if a text is a valid user name: it is written into URLs without encoding.
fn is_name(user: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LONGEST_USER).contains(&user.len()) && user.bytes().all(is_fine)
}

fn message(purpose: Purpose, parts: &[&str]) -> Vec<u8> {
    let purpose = match purpose {
        Purpose::Visitor => "visitor",
        Purpose::Buy => "buy",
        Purpose::Pay => "pay",
        Purpose::Keeper => "keeper",
        Purpose::KeeperVisit => "keeper visit",
    };
    let mut message = Vec::with_capacity(128);
    for part in [purpose].iter().chain(parts) {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part.as_bytes());
    }
    message
}

/// Decodes hexadecimal digits; only lower-case ones, so that a signature has one spelling.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(url: &str) -> (String, i64, String) {
        let value = |name: &str| {
            let (_, rest) = url.split_once(&format!("{name}=")).unwrap();
            rest.split('&').next().unwrap().to_owned()
        };
        (value("user"), value("until").parse().unwrap(), value("sign"))
    }

    #[test]
    fn a_link_is_good_for_its_sale_its_buyer_and_its_time_only() {
        let signer = Signer::new("secret");
        let (user, until, sign) = signed(&signer.buy_url(1, "ana", 5));
        assert!(signer.has_made_buy_url(1, &user, (until, &sign)));
        assert!(!signer.has_made_buy_url(2, &user, (until, &sign)));
        assert!(!signer.has_made_buy_url(1, "bob", (until, &sign)));
        assert!(!signer.has_made_buy_url(1, &user, (until + 1, &sign)));
        assert!(!Signer::new("other").has_made_buy_url(1, &user, (until, &sign)));
        assert!(!Signer::random().has_made_buy_url(1, &user, (until, &sign)));
    }

    #[test]
    fn parts_that_read_the_same_in_a_row_are_not_the_same() {
        let signer = Signer::new("secret");
        let (_, until, sign) = signed(&signer.buy_url(1, "23", 5));
        assert!(signer.has_made_buy_url(1, "23", (until, &sign)));
        assert!(!signer.has_made_buy_url(12, "3", (until, &sign)));
        assert_ne!(message(Purpose::Pay, &["1", "23"]), message(Purpose::Pay, &["12", "3"]));
    }

    #[test]
    fn a_signature_for_one_purpose_is_good_for_no_other() {
        let signer = Signer::new("secret");
        let sign = signer.sign(Purpose::Pay, &["ana"]);
        assert!(signer.knows(Purpose::Pay, &["ana"], &sign));
        for purpose in [Purpose::Visitor, Purpose::Buy, Purpose::Keeper, Purpose::KeeperVisit] {
            assert!(!signer.knows(purpose, &["ana"], &sign), "{purpose:?}");
        }
    }

    #[test]
    fn a_forged_cookie_is_nobody() {
        let signer = Signer::new("secret");
        let cookie = signer.visitor("ana");
        assert_eq!(signer.user_of(&cookie), Some("ana"));
        for forged in ["", "ana", "ana.", "ana.00", ".", "bob.0"] {
            assert_eq!(signer.user_of(forged), None, "{forged}");
        }
        assert_eq!(signer.user_of(&cookie.replace("ana", "bob")), None);
        assert_eq!(signer.user_of(&cookie.to_uppercase()), None);
        assert_eq!(signer.user_of(&cookie[..cookie.len() - 1]), None);
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
    fn a_name_that_would_change_an_address_is_nobodys() {
        let signer = Signer::new("secret");
        for user in ["", "a&b", "a b", "a%20", "ä", &"x".repeat(65)] {
            let sign = signer.sign(Purpose::Pay, &["1", user]);
            assert!(!signer.has_made_pay_url("1", user, &sign), "{user}");
        }
    }

    #[test]
    fn the_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Signer::new("hush")), "Signer { .. }");
    }
}
