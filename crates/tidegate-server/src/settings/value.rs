//! Parses values of settings: counts, sizes and words from a fixed list.
//!
//! Each parser returns the fault and a remedy as text. The caller puts the name of the setting and the value before
//! it.

use std::num::NonZeroUsize;

use hyper::StatusCode;
use tidegate::OnStoreFailure;
use tidegate_support::{Bytes, Dialect, TrustedProxies, byte_count, nearest};

use super::shared::Kind;

/// Twice the longest request, which is a rules file. With less, such a request could never arrive.
const MIN_UNFINISHED: usize = 8 << 20;

/// Parses the number of bytes for unfinished requests.
///
/// Too small a value is an error, since long but valid requests could never be served.
pub(super) fn unfinished(text: &str) -> Result<usize, String> {
    match byte_count(text)? {
        bytes if bytes < MIN_UNFINISHED => {
            Err(format!("long requests could never arrive; write at least \"{}\"", Bytes(MIN_UNFINISHED)))
        }
        bytes => Ok(bytes),
    }
}

/// Parses a number from 1 to `most`.
pub(super) fn count(text: &str, most: usize) -> Result<NonZeroUsize, String> {
    let number = text.parse::<NonZeroUsize>().ok().filter(|number| number.get() <= most);
    number.ok_or_else(|| format!("write a whole number from 1 to {most}"))
}

/// Parses `true` or `false`.
pub(super) fn yes_or_no(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "write true or false".to_owned())
}

/// Parses the dialect of rate-limit header fields.
pub(super) fn dialect(text: &str) -> Result<Dialect, String> {
    let dialects = [
        ("ietf", Dialect::Ietf),
        ("draft07", Dialect::Draft07),
        ("draft03", Dialect::Draft03),
        ("x-ratelimit", Dialect::XRateLimit),
        ("none", Dialect::None),
    ];
    one_of("dialect", dialects, text)
}

/// Parses the networks of trusted proxies, separated by commas.
pub(super) fn trusted_proxies(text: &str) -> Result<TrustedProxies, String> {
    let mut trusted = TrustedProxies::default();
    for network in text.split(',').map(str::trim).filter(|network| !network.is_empty()) {
        trusted.add_text(network).map_err(|error| error.to_string())?;
    }
    Ok(trusted)
}

/// Parses the status code of a denial at `/v1/auth`.
pub(super) fn denial_status(text: &str) -> Result<StatusCode, String> {
    match text {
        "403" => Ok(StatusCode::FORBIDDEN),
        "429" => Ok(StatusCode::TOO_MANY_REQUESTS),
        _ => Err("write 429, or 403 for nginx, which turns 429 into 500".to_owned()),
    }
}

/// Parses the kind of store.
///
/// Valkey has no word of its own, since it uses the protocol of Redis.
pub(super) fn kind(text: &str) -> Result<Kind, String> {
    let kinds = [("memory", Kind::Memory), ("redis", Kind::Redis)];
    one_of("kind of store", kinds, text).map_err(|what| match nearest(text, ["valkey"]) {
        Some(_) => "write \"redis\"; Valkey speaks the same".to_owned(),
        None => what,
    })
}

/// Parses the policy while Redis is down.
pub(super) fn on_store_failure(text: &str) -> Result<OnStoreFailure, String> {
    let policies = [
        ("local", OnStoreFailure::Local),
        ("open", OnStoreFailure::Open),
        ("closed", OnStoreFailure::Closed),
    ];
    one_of("policy", policies, text)
}

/// Returns the value of one of these words. The error suggests the nearest word, or lists all.
fn one_of<T: Copy, const N: usize>(what: &str, words: [(&str, T); N], text: &str) -> Result<T, String> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let words = words.map(|(word, _)| word);
    Err(match nearest(text, words) {
        Some(word) => format!("unknown {what}; did you mean {word:?}?"),
        None => {
            let (last, others) = words.split_last().expect("there are words to choose from");
            let others: Vec<_> = others.iter().map(|word| format!("{word:?}")).collect();
            format!("unknown {what}; write {} or {last:?}", others.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_requests_have_at_least_what_the_longest_needs() {
        assert_eq!(unfinished("8MiB"), Ok(8 << 20));
        assert_eq!(unfinished("1GiB"), Ok(1 << 30));
        let least = Err("long requests could never arrive; write at least \"8 MiB\"".to_owned());
        assert_eq!((unfinished("8388607"), unfinished("0")), (least.clone(), least));
        assert!(unfinished("much").unwrap_err().contains("a size begins with a number"));
    }

    #[test]
    fn a_count_is_within_its_bounds() {
        assert_eq!(count("1", 8), Ok(NonZeroUsize::MIN));
        assert_eq!(count("8", 8).map(NonZeroUsize::get), Ok(8));
        for text in ["", "0", "9", "-1", "1.5", "two", "99999999999999999999"] {
            assert_eq!(count(text, 8), Err("write a whole number from 1 to 8".to_owned()), "{text}");
        }
    }

    #[test]
    fn a_slip_in_a_dialect_is_recognised() {
        assert_eq!(dialect("x-ratelimit"), Ok(Dialect::XRateLimit));
        assert_eq!(dialect("X-RateLimits"), Err("unknown dialect; did you mean \"x-ratelimit\"?".to_owned()));
        let all = "unknown dialect; write \"ietf\", \"draft07\", \"draft03\", \"x-ratelimit\" or \"none\"";
        assert_eq!(dialect("github"), Err(all.to_owned()));
    }

    #[test]
    fn counts_are_held_in_memory_or_in_redis() {
        assert_eq!((kind("memory"), kind("redis")), (Ok(Kind::Memory), Ok(Kind::Redis)));
        assert_eq!(kind("rediss"), Err("unknown kind of store; did you mean \"redis\"?".to_owned()));
        assert_eq!(kind("disk"), Err("unknown kind of store; write \"memory\" or \"redis\"".to_owned()));
        assert_eq!(kind("valkey"), Err("write \"redis\"; Valkey speaks the same".to_owned()));
    }

    #[test]
    fn policies_and_answers_are_words() {
        assert_eq!(on_store_failure("closed"), Ok(OnStoreFailure::Closed));
        assert_eq!(on_store_failure("close"), Err("unknown policy; did you mean \"closed\"?".to_owned()));
        assert_eq!((yes_or_no("true"), yes_or_no("false")), (Ok(true), Ok(false)));
        assert!(yes_or_no("yes").is_err());
    }
}
