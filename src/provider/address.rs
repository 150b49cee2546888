//! Provider URLs: their parts, the endpoints under a base URL, and a normal form to compare them.

/// The parts of a URL, as written. A missing user is `None`; any other missing part is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address<'a> {
    /// The part before `://`.
    pub scheme: &'a str,
    /// The part before an `@`: a user name, optionally with a password.
    pub user: Option<&'a str>,
    /// The host, without the brackets of an IPv6 address.
    pub host: &'a str,
    /// The port.
    pub port: &'a str,
    /// The path, with its leading slash.
    pub path: &'a str,
    /// The query and the fragment, with the leading `?` or `#`.
    pub query: &'a str,
}

impl<'a> Address<'a> {
    /// Splits a URL into its parts.
    #[must_use]
    pub fn parse(url: &'a str) -> Address<'a> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        // HTTP clients skip extra slashes and treat what follows as the host.
        let rest = rest.trim_start_matches(['/', '\\']);
        let (rest, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = match place.strip_prefix('[').and_then(|v6| v6.split_once(']')) {
            Some((host, port)) => (host, port.trim_start_matches(':')),
            None => place.split_once(':').unwrap_or((place, "")),
        };
        Address { scheme, user, host, port, path, query }
    }

    /// Returns true if the host is `domain` or a subdomain of it. Case does not matter.
    #[must_use]
    pub fn is_below(&self, domain: &str) -> bool {
        let Some(start) = self.host.len().checked_sub(domain.len()) else { return false };
        let (before, end) = (self.host.get(..start), self.host.get(start..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(domain))
            && before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }
}

/// Splits a base URL into the part before its query, without trailing slashes, and the query.
#[must_use]
pub fn split_query(base: &str) -> (&str, &str) {
    let (base, query) = base.split_at(base.find(['?', '#']).unwrap_or(base.len()));
    (base.trim_end_matches('/'), query)
}

/// Returns the URL with `ending` appended to its path, before any query.
#[must_use]
pub fn with_ending(url: &str, ending: &str) -> String {
    let (base, query) = split_query(url);
    format!("{base}{ending}{query}")
}

/// Returns the URL with a parameter added to its query.
#[must_use]
pub fn with_parameter(url: &str, parameter: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}{parameter}")
}

/// The path of the endpoint for chat completions.
pub const CHAT: &str = "/chat/completions";
/// The path of the endpoint for Responses.
pub const RESPONSES: &str = "/responses";

/// Returns the path of the endpoint of one of OpenAI's APIs, if the address is one.
#[must_use]
pub fn openai_endpoint(base: &str) -> Option<&'static str> {
    let path = Address::parse(base).path.trim_end_matches('/');
    [CHAT, RESPONSES].into_iter().find(|endpoint| path.ends_with(endpoint))
}

/// Returns the URL of an endpoint of OpenAI's APIs. The base URL may end in a slash or be the endpoint itself; a query stays
/// at the end. `/v1` is inserted unless the path or the query contains a version: `https://host`, `https://host/v1/`,
/// `https://host/api/v1` and `https://host/openai/deployments/x?api-version=1` all work.
#[must_use]
pub fn openai_url(base: &str, endpoint: &str) -> String {
    let Address { path, query, .. } = Address::parse(base);
    if openai_endpoint(base) == Some(endpoint) {
        return base.to_owned();
    }
    let version = match path.trim_end_matches('/') {
        _ if query.contains("api-version=") => "",
        "" if is_azure(base) => "/openai/v1",
        path if path.split('/').any(is_version) => "",
        _ => "/v1",
    };
    with_ending(base, &[version, endpoint].concat())
}

/// Returns the URL of the list of models of OpenAI's APIs. The base URL is as for [`openai_url`], and may be an endpoint.
#[must_use]
pub fn openai_models(base: &str) -> String {
    let (path, query) = split_query(base);
    let path = openai_endpoint(base).and_then(|it| path.strip_suffix(it)).unwrap_or(path);
    openai_url(&[path, query].concat(), "/models")
}

/// The platform on which a provider's models are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// The provider's own, or a server that is like it.
    Own,
    /// Google's Vertex AI: `https://LOCATION-aiplatform.googleapis.com/v1/projects/P/locations/LOCATION`.
    Vertex,
    /// Amazon Bedrock: `https://bedrock-runtime.REGION.amazonaws.com`.
    Bedrock,
}

impl Platform {
    /// Returns the platform at an address, judging by the host and by the path, because the host may be a gateway.
    #[must_use]
    pub fn at(base: &str) -> Platform {
        let address = Address::parse(base);
        let has = |begin: &str| address.path.split('/').any(|segment| segment.starts_with(begin));
        let is_bedrock = address.host.starts_with("bedrock-runtime") || has("bedrock-runtime");
        match address.host.ends_with("aiplatform.googleapis.com") {
            _ if is_bedrock => Platform::Bedrock,
            false if !has("locations") => Platform::Own,
            _ => Platform::Vertex,
        }
    }
}

/// Returns the URL of the models of a publisher on Vertex AI. The base URL may end in the location or in the publisher.
#[must_use]
pub fn vertex_parent<'b>(base: &'b str, publisher: &str) -> (String, &'b str) {
    let (path, query) = split_query(base);
    let path = path.find("/publishers/").map_or(path, |at| &path[..at]);
    (format!("{path}/publishers/{publisher}/models"), query)
}

/// Returns a name as a segment of a path. Characters that have a meaning there are replaced.
#[must_use]
pub fn segment(name: impl AsRef<[u8]>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '~');
    let encoded = name.as_ref().iter().map(|byte| match char::from(*byte) {
        c if is_plain(c) => c.to_string(),
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// Returns true if a segment of a path is a version, such as `v1`, `v4` or `v1beta`.
#[must_use]
pub fn is_version(segment: &str) -> bool {
    let number = segment.strip_prefix('v').unwrap_or_default();
    number.starts_with(|first: char| first.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_alphanumeric())
}

/// The path endings that [`place`] drops: endpoints, `/v1` and `/api`.
const ENDINGS: [&str; 7] = [CHAT, RESPONSES, "/messages", "/api/chat", "/v1", "/v1beta", "/api"];

/// Returns a normal form that is equal for all URLs of the same API: scheme and host in lower case, without the
/// user, the query, the scheme's default port, an endpoint's path, `/v1` and `/api`.
#[must_use]
pub fn place(url: &str) -> String {
    let Address { scheme, host, port, path, .. } = Address::parse(url);
    let scheme = scheme.to_ascii_lowercase();
    let usual = match scheme.as_str() {
        "http" => "80",
        "https" => "443",
        _ => "",
    };
    let mut place = match scheme.as_str() {
        "" => String::new(),
        scheme => format!("{scheme}://"),
    };
    let host = host.to_ascii_lowercase();
    place.push_str(&if host.contains(':') { format!("[{host}]") } else { host });
    if !port.is_empty() && port != usual {
        place.push_str(&format!(":{port}"));
    }
    let path = ENDINGS.iter().fold(path.trim_end_matches('/'), |path, ending| {
        path.strip_suffix(ending).unwrap_or(path).trim_end_matches('/')
    });
    place + path
}

/// Returns a URL that is safe to show. Hides the user, the password, and every value in the query or fragment
/// except that of `api-version`.
#[must_use]
pub fn shown(url: &str) -> String {
    let (base, query) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    let base = match base.rsplit_once('@') {
        None => base.to_owned(),
        Some((before, rest)) => {
            let schemes = ["https://", "http://"].into_iter();
            let scheme = schemes.into_iter().find(|scheme| before.starts_with(scheme));
            format!("{}(hidden)@{rest}", scheme.unwrap_or_default())
        }
    };
    let Some((sign, members)) = query.split_at_checked(1) else { return base };
    let members = members.split('&').map(|member| match member.split_once('=') {
        Some((name, _)) if name != "api-version" => format!("{name}=(hidden)"),
        None if !member.is_empty() => "(hidden)".to_owned(),
        _ => member.to_owned(),
    });
    format!("{base}{sign}{}", members.collect::<Vec<_>>().join("&"))
}

/// Returns the scheme, host and port of a URL, safe to show.
#[must_use]
pub fn origin(url: &str) -> String {
    let shown = shown(url);
    let start = shown.find("://").map_or(0, |at| at + 3);
    let end = shown[start..].find(['/', '?', '#']).map_or(shown.len(), |at| start + at);
    shown[..end].to_owned()
}

/// Returns true if the URL's host belongs to Azure.
#[must_use]
pub fn is_azure(url: &str) -> bool {
    let address = Address::parse(url);
    let domains = ["openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"];
    domains.into_iter().any(|domain| address.is_below(domain))
}

/// Returns the path of a URL, for recordings. The query is omitted, because it may hold a key.
#[must_use]
pub fn path(url: &str) -> &str {
    match Address::parse(url).path {
        "" => "/",
        path => path,
    }
}

/// Returns true if the URL's host is this machine.
#[must_use]
pub fn is_local(url: &str) -> bool {
    let Address { user, host, .. } = Address::parse(url);
    let ip: Option<std::net::IpAddr> = host.parse().ok();
    let is_here = host.eq_ignore_ascii_case("localhost") || ip.is_some_and(|ip| ip.is_loopback());
    // A URL with a user name never counts as local; requests to such URLs are refused anyway.
    user.is_none() && is_here
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_11_urls_of_the_same_api_have_the_same_normal_form() {
        for (url, same) in [
            ("https://API.Example.com", "https://api.example.com"),
            ("https://api.example.com/", "https://api.example.com"),
            ("https://api.example.com:443/v1/", "https://api.example.com"),
            (
                "HTTPS://api.example.com/v1/chat/completions?api-version=1",
                "https://api.example.com",
            ),
            ("https://api.example.com/v1/messages", "https://api.example.com"),
            ("http://127.0.0.1:11434/api/chat", "http://127.0.0.1:11434"),
            ("http://[::1]:80/v1", "http://[::1]"),
            ("https://u:p@api.example.com/api/v1", "https://api.example.com"),
            ("https://openrouter.ai/api/v1", "https://openrouter.ai/api"),
            ("https://x/Deployment", "https://x/Deployment"),
            ("http://x:443", "http://x:443"),
            ("localhost:8080/v1", "localhost:8080"),
            ("offline", "offline"),
        ] {
            assert_eq!(place(url), place(same), "{url}");
        }
        assert_eq!(place("https://x:8443/a/v1/?k=v"), "https://x:8443/a");
        for other in ["http://x", "https://x:444", "https://x/v2", "https://y", "https://x/A"] {
            assert_ne!(place("https://x/a"), place(other), "{other}");
        }
    }

    #[test]
    fn audit_16_hosts_are_compared_by_domain() {
        let is_below = |url, domain| Address::parse(url).is_below(domain);
        for url in ["https://api.openai.com/v1", "https://EU.api.OpenAI.com:443", "api.openai.com"]
        {
            assert!(is_below(url, "api.openai.com"), "{url}");
        }
        for url in [
            "https://notapi.openai.com",
            "https://api.openai.com.example.org",
            "https://api.openai.com@example.org",
            "https://example.org/api.openai.com",
            "https://é",
        ] {
            assert!(!is_below(url, "api.openai.com"), "{url}");
        }
    }

    #[test]
    fn audit_21_a_query_is_shown_without_its_values() {
        for (url, expected) in [
            ("https://x/v1?api-version=1", "https://x/v1?api-version=1"),
            ("https://x/v1?key=abc&api-version=1", "https://x/v1?key=(hidden)&api-version=1"),
            ("https://x/v1?abc", "https://x/v1?(hidden)"),
            ("https://x/v1?", "https://x/v1?"),
            ("https://u:p@x/v1#abc", "https://(hidden)@x/v1#(hidden)"),
            ("https://x/v1", "https://x/v1"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn t5_only_loopback_hosts_are_local() {
        for url in [
            "http://127.0.0.1:1/v1",
            "http://localhost/x",
            "http://[::1]:8080/",
            "https://127.0.0.1/",
            "https://LOCALHOST:8443",
        ] {
            assert!(is_local(url), "{url}");
        }
        for url in [
            "http://example.org/",
            "http://127.0.0.1@example.org/",
            "http://127.0.0.1.example.org/",
            "https://127.0.0.1@example.org/",
            "https://localhost.example.org/",
            "http://10.0.0.1/",
        ] {
            assert!(!is_local(url), "{url}");
        }
    }

    #[test]
    fn t5_a_password_in_an_address_is_not_shown() {
        for (url, expected) in [
            ("https://a.example/v1", "https://a.example/v1"),
            ("https://u:p@a.example/v1", "https://(hidden)@a.example/v1"),
            ("http:///u:p@q@a.example", "http://(hidden)@a.example"),
            ("u:p://@a.example", "(hidden)@a.example"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn a_path_follows_the_host_and_excludes_the_query() {
        assert_eq!(path("https://a.example/v1/messages"), "/v1/messages");
        assert_eq!(path("http://a.example"), "/");
        assert_eq!(path("https://a.example/v1/messages?key=x"), "/v1/messages");
    }
}
