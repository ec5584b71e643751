//! Where a request can go.

use hyper::Method;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Take,
    Peek,
    Adjust,
    Reset,
    Release,
    Renew,
    Live,
    Ready,
    Metrics,
    OpenApi,
}

impl Route {
    /// All there are; the document of the interface lists them as well.
    #[cfg(test)]
    pub(super) const ALL: [(Route, &str); 10] = [
        (Route::Take, "/v1/take"),
        (Route::Peek, "/v1/peek"),
        (Route::Adjust, "/v1/adjust"),
        (Route::Reset, "/v1/reset"),
        (Route::Release, "/v1/release"),
        (Route::Renew, "/v1/renew"),
        (Route::Live, "/livez"),
        (Route::Ready, "/readyz"),
        (Route::Metrics, "/metrics"),
        (Route::OpenApi, "/openapi.json"),
    ];

    #[inline]
    pub(super) fn of(path: &str) -> Option<Route> {
        Some(match path {
            "/v1/take" => Route::Take,
            "/v1/peek" => Route::Peek,
            "/v1/adjust" => Route::Adjust,
            "/v1/reset" => Route::Reset,
            "/v1/release" => Route::Release,
            "/v1/renew" => Route::Renew,
            "/livez" => Route::Live,
            "/readyz" => Route::Ready,
            "/metrics" => Route::Metrics,
            "/openapi.json" => Route::OpenApi,
            _ => return None,
        })
    }

    /// Whether it is asked with a body, by POST.
    #[inline]
    pub(super) fn has_body(self) -> bool {
        !matches!(self, Route::Live | Route::Ready | Route::Metrics | Route::OpenApi)
    }

    #[inline]
    pub(super) fn takes(self, method: &Method) -> bool {
        if self.has_body() { method == Method::POST } else { method == Method::GET || method == Method::HEAD }
    }

    /// The methods that it takes, as the header field `Allow` has them.
    pub(super) fn methods(self) -> &'static str {
        if self.has_body() { "POST" } else { "GET, HEAD" }
    }

    /// Whether only those who know the token may ask; whoever watches over the process does not have it.
    #[inline]
    pub(super) fn is_guarded(self) -> bool {
        !matches!(self, Route::Live | Route::Ready)
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
