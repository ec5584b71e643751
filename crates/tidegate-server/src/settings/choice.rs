//! Words of which one has to be chosen.

use tidegate_rules::config::nearest;

use super::HeaderDialect;

/// How answers over HTTP say what is left.
pub(super) fn dialect(text: &str) -> Result<HeaderDialect, String> {
    const DIALECTS: [(&str, HeaderDialect); 4] = [
        ("ietf", HeaderDialect::Ietf),
        ("draft03", HeaderDialect::Draft03),
        ("x-ratelimit", HeaderDialect::XRateLimit),
        ("none", HeaderDialect::None),
    ];
    if let Some((_, dialect)) = DIALECTS.iter().find(|(name, _)| *name == text) {
        return Ok(*dialect);
    }
    Err(match nearest(text, DIALECTS.map(|(name, _)| name)) {
        Some(name) => format!("unknown dialect; did you mean \"{name}\"?"),
        None => "unknown dialect; write \"ietf\", \"draft03\", \"x-ratelimit\" or \"none\"".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_in_a_dialect_is_recognised() {
        assert_eq!(dialect("x-ratelimit"), Ok(HeaderDialect::XRateLimit));
        assert_eq!(dialect("X-RateLimits"), Err("unknown dialect; did you mean \"x-ratelimit\"?".to_owned()));
        let all = "unknown dialect; write \"ietf\", \"draft03\", \"x-ratelimit\" or \"none\"";
        assert_eq!(dialect("github"), Err(all.to_owned()));
    }
}
