//! The routes: paths, methods, and the content that they take.
//!
//! A path has one route per method. Everything that a request has to fulfil before it is executed derives from its
//! route: content type, length of the body, token.

use hyper::Method;

use super::body::{MAX_BATCH_BYTES, MAX_BODY_BYTES, MAX_FILE_BYTES};
use crate::engine::Engine;

/// An operation of the HTTP interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Takes from a limit that comes with the request.
    Take,
    /// Takes from a token bucket, as throttlecrab does.
    Throttle,
    /// Decides like a take, and spends nothing.
    Peek,
    /// Charges or refunds units afterwards.
    Adjust,
    /// Removes the state of a key.
    Reset,
    /// Releases a permit.
    Release,
    /// Renews the lease of a permit.
    Renew,
    /// Decides by the rules.
    Admit,
    /// Decides many requests by the rules.
    AdmitBatch,
    /// Decides a request that a proxy describes by header fields.
    Auth,
    /// Explains a decision of the rules.
    Explain,
    /// Lists the keys with the most denials.
    Top,
    /// Lists the banned keys.
    Bans,
    /// Lists the rules with their counts.
    Rules,
    /// The rules as the text of the file.
    RulesText,
    /// Replaces the rules file.
    PutRules,
    /// Lists the overrides.
    Overrides,
    /// Puts an override in force.
    PutOverride,
    /// Removes an override.
    DeleteOverride,
    /// Liveness: the process replies.
    Live,
    /// Readiness, without details.
    Ready,
    /// Readiness with details, for an authorized client.
    ReadyInDetail,
    /// Metrics for Prometheus.
    Metrics,
    /// The description of this interface.
    OpenApi,
}

/// The content that a request has to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// No body.
    None,
    /// A JSON object.
    Json,
    /// The text of a rules file.
    Toml,
}

impl Route {
    /// All paths; the `OpenAPI` document lists them as well.
    const ALL: [(Route, &str); 19] = [
        (Route::Take, "/v1/take"),
        (Route::Throttle, "/throttle"),
        (Route::Peek, "/v1/peek"),
        (Route::Adjust, "/v1/adjust"),
        (Route::Reset, "/v1/reset"),
        (Route::Release, "/v1/release"),
        (Route::Renew, "/v1/renew"),
        (Route::Admit, "/v1/admit"),
        (Route::AdmitBatch, "/v1/admit/batch"),
        (Route::Auth, "/v1/auth"),
        (Route::Explain, "/v1/explain"),
        (Route::Top, "/v1/top"),
        (Route::Bans, "/v1/bans"),
        (Route::Rules, "/v1/rules"),
        (Route::Overrides, "/v1/overrides"),
        (Route::Live, "/livez"),
        (Route::Ready, "/readyz"),
        (Route::Metrics, "/metrics"),
        (Route::OpenApi, "/openapi.json"),
    ];

    /// Returns the route at a path; for a path with several methods, that of `GET`.
    #[inline]
    pub(super) fn of(path: &str) -> Option<Route> {
        Route::ALL.iter().find(|(_, known)| *known == path).map(|(route, _)| *route)
    }

    /// Returns the route of a method at this route's path; `None` if the path does not take it.
    #[inline]
    pub(super) fn by(self, method: &Method) -> Option<Route> {
        let is_read = method == Method::GET || method == Method::HEAD;
        match self {
            Route::Rules if method == Method::PUT => Some(Route::PutRules),
            Route::Overrides if method == Method::PUT => Some(Route::PutOverride),
            Route::Overrides if method == Method::DELETE => Some(Route::DeleteOverride),
            _ if self.content() == Content::None => is_read.then_some(self),
            _ => (method == Method::POST).then_some(self),
        }
    }

    /// Returns the methods that its path takes, as in the header field `Allow`.
    pub(super) fn methods(self) -> &'static str {
        match self {
            Route::Rules => "GET, HEAD, PUT",
            Route::Overrides => "GET, HEAD, PUT, DELETE",
            _ if self.content() == Content::None => "GET, HEAD",
            _ => "POST",
        }
    }

    /// Returns the content that the route takes.
    #[inline]
    pub(super) fn content(self) -> Content {
        match self {
            Route::Live | Route::Ready | Route::ReadyInDetail | Route::Auth => Content::None,
            Route::Metrics | Route::OpenApi => Content::None,
            Route::Top | Route::Bans | Route::Rules | Route::RulesText | Route::Overrides => Content::None,
            Route::PutRules => Content::Toml,
            _ => Content::Json,
        }
    }

    /// Returns true if its reply may take a while. Routes with a JSON body and the list of bans ask the store, which may
    /// be remote. A batch yields to other connections.
    #[inline]
    pub(super) fn is_awaited(self, engine: &Engine) -> bool {
        let asks_store = self.content() == Content::Json || self == Route::Bans;
        self == Route::AdmitBatch || (asks_store && !engine.answers_at_once())
    }

    /// Returns the longest body that the route takes, in bytes.
    #[inline]
    pub(super) fn max_body_bytes(self) -> usize {
        match self {
            Route::PutRules => MAX_FILE_BYTES,
            Route::AdmitBatch => MAX_BATCH_BYTES,
            _ => MAX_BODY_BYTES,
        }
    }

    /// Returns true if the route needs the token. Health checks do not, since a supervisor does not have it.
    #[inline]
    pub(super) fn is_guarded(self) -> bool {
        !matches!(self, Route::Live | Route::Ready | Route::ReadyInDetail)
    }

    /// Returns true if the route changes rules or overrides, which is allowed only on a server with a token.
    #[inline]
    pub(super) fn needs_admin(self) -> bool {
        matches!(self, Route::PutRules | Route::PutOverride | Route::DeleteOverride)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::front::http::service::OPENAPI;

    #[test]
    fn the_document_lists_every_route_with_its_methods_and_no_other() {
        let document: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let mut listed = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                listed.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
        let served = Route::ALL.iter().flat_map(|(route, path)| {
            route.methods().split(", ").map(move |method| format!("{method} {path}"))
        });
        assert_eq!(listed, served.collect());
    }

    #[test]
    fn every_route_is_found_by_its_path_and_nothing_near_it_is() {
        for (route, path) in Route::ALL {
            assert_eq!(Route::of(path), Some(route));
            for other in [&path[1..], &format!("{path}/"), &path.to_uppercase(), &path[..path.len() - 1]] {
                assert_eq!(Route::of(other), None, "{other}");
            }
        }
    }
}
