//! Words of which one has to be chosen.

use tidegate_support::{Dialect, nearest};

/// How answers over HTTP say what is left.
pub(super) fn dialect(text: &str) -> Result<Dialect, String> {
    const DIALECTS: [(&str, Dialect); 5] = [
        ("ietf", Dialect::Ietf),
        ("draft07", Dialect::Draft07),
        ("draft03", Dialect::Draft03),
        ("x-ratelimit", Dialect::XRateLimit),
        ("none", Dialect::None),
    ];
    if let Some((_, dialect)) = DIALECTS.iter().find(|(name, _)| *name == text) {
        return Ok(*dialect);
    }
    Err(match nearest(text, DIALECTS.map(|(name, _)| name)) {
        Some(name) => format!("unknown dialect; did you mean \"{name}\"?"),
        None => "unknown dialect; write \"ietf\", \"draft07\", \"draft03\", \"x-ratelimit\" or \"none\""
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_in_a_dialect_is_recognised() {
        assert_eq!(dialect("x-ratelimit"), Ok(Dialect::XRateLimit));
        assert_eq!(dialect("X-RateLimits"), Err("unknown dialect; did you mean \"x-ratelimit\"?".to_owned()));
        let all = "unknown dialect; write \"ietf\", \"draft07\", \"draft03\", \"x-ratelimit\" or \"none\"";
        assert_eq!(dialect("github"), Err(all.to_owned()));
    }
}
