//! What a path means. Whatever stands before the known endings is accepted, so that any base URL
//! works.

use hyper::Method;
use hyper::http::HeaderMap;

use crate::api::Api;
use crate::ask::Delivery;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    Control,
    Model(Target),
    Models(Api),
    Token,
    Nothing,
}

/// A model request as far as its path tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub api: Api,
    /// Gemini says in the path what the others say in the body.
    pub gemini: Option<(String, Delivery)>,
}

impl Target {
    fn of(api: Api) -> Route {
        Route::Model(Target { api, gemini: None })
    }
}

pub fn route(method: &Method, path: &str, query: &str, headers: &HeaderMap) -> Route {
    if path.starts_with("/_") {
        return Route::Control;
    }
    let path = path.trim_end_matches('/');
    if *method == Method::GET && path.ends_with("/models") {
        return Route::Models(models_api(path, headers));
    }
    if *method != Method::POST {
        return Route::Nothing;
    }
    let ends = |ending: &str| path.ends_with(ending);
    if ends("/responses") {
        Target::of(Api::Responses)
    } else if ends("/chat/completions") {
        Target::of(Api::Chat)
    } else if ends("/messages") {
        Target::of(Api::Anthropic)
    } else if ends("/token") {
        Route::Token
    } else if let Some(gemini) = gemini(path, query) {
        Route::Model(Target { api: Api::Gemini, gemini: Some(gemini) })
    } else {
        Route::Nothing
    }
}

/// `…/models/{model}:generateContent`, or `:streamGenerateContent` with `alt=sse` or as an array.
fn gemini(path: &str, query: &str) -> Option<(String, Delivery)> {
    let (before, call) = path.rsplit_once(':')?;
    let (_, model) = before.rsplit_once("/models/")?;
    let is_sse = query.split('&').any(|pair| pair == "alt=sse");
    let delivery = match call {
        "generateContent" => Delivery::Whole,
        "streamGenerateContent" if is_sse => Delivery::Events,
        "streamGenerateContent" => Delivery::Array,
        _ => return None,
    };
    Some((model.to_owned(), delivery))
}

fn models_api(path: &str, headers: &HeaderMap) -> Api {
    if headers.contains_key("anthropic-version") {
        Api::Anthropic
    } else if path.ends_with("/v1beta/models") || headers.contains_key("x-goog-api-key") {
        Api::Gemini
    } else {
        Api::Responses
    }
}

/// Whether a request carries a key where its API wants it.
pub fn has_key(api: Api, headers: &HeaderMap, query: &str) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let bearer = text("authorization").split_once(' ').is_some_and(|(scheme, key)| {
        scheme.eq_ignore_ascii_case("bearer") && !key.trim().is_empty()
    });
    let in_query = || query.split('&').any(|pair| pair.starts_with("key=") && pair.len() > 4);
    match api {
        Api::Responses | Api::Chat => bearer,
        Api::Anthropic => bearer || !text("x-api-key").is_empty(),
        Api::Gemini => bearer || !text("x-goog-api-key").is_empty() || in_query(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(path: &str, query: &str) -> Route {
        route(&Method::POST, path, query, &HeaderMap::new())
    }

    #[test]
    fn any_prefix_is_accepted() {
        assert_eq!(post("/responses", ""), Target::of(Api::Responses));
        assert_eq!(post("/a/b/v1/responses/", ""), Target::of(Api::Responses));
        assert_eq!(post("/v1/chat/completions", ""), Target::of(Api::Chat));
        assert_eq!(post("/x/v1/messages", ""), Target::of(Api::Anthropic));
        assert_eq!(post("/oauth2/token", ""), Route::Token);
        assert_eq!(post("/other", ""), Route::Nothing);
        assert_eq!(post("/_script", ""), Route::Control);
    }

    #[test]
    fn gemini_says_it_in_the_path() {
        let gemini = |path, query| match post(path, query) {
            Route::Model(Target { api: Api::Gemini, gemini: Some(gemini) }) => Some(gemini),
            _ => None,
        };
        let m = |delivery| Some(("m-1".to_owned(), delivery));
        assert_eq!(gemini("/v1beta/models/m-1:generateContent", ""), m(Delivery::Whole));
        let stream = "/v1beta/models/m-1:streamGenerateContent";
        assert_eq!(gemini(stream, "alt=sse"), m(Delivery::Events));
        assert_eq!(gemini(stream, "key=k&alt=sse"), m(Delivery::Events));
        assert_eq!(gemini(stream, ""), m(Delivery::Array));
        let vertex = "/v1/projects/p/locations/l/publishers/google/models/m-1:generateContent";
        assert_eq!(gemini(vertex, ""), m(Delivery::Whole));
        assert_eq!(gemini("/v1beta/models/m-1:countTokens", ""), None);
    }

    #[test]
    fn models_are_listed_for_whom_asks() {
        let list = |path: &str, header: &'static str| {
            let mut headers = HeaderMap::new();
            if !header.is_empty() {
                headers.insert(header, hyper::http::HeaderValue::from_static("x"));
            }
            route(&Method::GET, path, "", &headers)
        };
        assert_eq!(list("/v1/models", ""), Route::Models(Api::Responses));
        assert_eq!(list("/v1/models", "anthropic-version"), Route::Models(Api::Anthropic));
        assert_eq!(list("/v1beta/models", ""), Route::Models(Api::Gemini));
        assert_eq!(list("/p/models", "x-goog-api-key"), Route::Models(Api::Gemini));
    }

    #[test]
    fn keys_are_where_their_api_wants_them() {
        let mut headers = HeaderMap::new();
        assert!(!has_key(Api::Chat, &headers, ""));
        assert!(!has_key(Api::Gemini, &headers, "key="));
        assert!(has_key(Api::Gemini, &headers, "key=k"));
        headers.insert("x-api-key", hyper::http::HeaderValue::from_static("k"));
        assert!(has_key(Api::Anthropic, &headers, ""));
        assert!(!has_key(Api::Gemini, &headers, ""));
        assert!(!has_key(Api::Responses, &headers, ""));
        headers.insert("authorization", hyper::http::HeaderValue::from_static("Bearer k"));
        assert!(has_key(Api::Responses, &headers, ""));
        headers.insert("authorization", hyper::http::HeaderValue::from_static("Basic k"));
        assert!(!has_key(Api::Responses, &headers, ""));
    }
}
