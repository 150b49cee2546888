//! How claw-call connects to a provider: TLS, redirects, plain http, proxies, and addresses.

use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;

use crate::common::provider::{FakeProvider, MESSAGES, MODEL, Step};
use crate::common::tls::{Front, Identity, Proxy, Signer, own_address};
use crate::common::{AssertExt, Cmd, Sandbox};

const HELLO: &str = "{\"role\":\"user\",\"content\":\"hello\"}\n";

/// A key that does not look like any known kind of key.
const KEY: &str = "key/of-the-house+901Z";

/// A host name that does not resolve to an address: only the proxy can reach it.
const ELSEWHERE: &str = "provider.invalid";

/// Returns a `claw-call` command with this address, the key and a greeting.
fn call(sandbox: &Sandbox, url: &str) -> Cmd {
    let cmd = sandbox.cmd("claw-call").env("ANTHROPIC_API_KEY", KEY).env("CLAW_MODEL", MODEL);
    cmd.args(["--base-url", url, "--max-retries", "0", "--timeout", "10"]).write_stdin(HELLO)
}

/// Checks that the call got an answer.
#[track_caller]
fn assert_answered(run: Assert) -> Assert {
    run.success().stderr("").stdout(contains(r#""type":"assistant""#))
}

/// Checks that the call failed with this status, for this reason, and did not show the key.
#[track_caller]
fn assert_failed(run: Assert, status: i32, why: &str) -> Assert {
    run.code(status).stdout("").stderr(contains(why)).stderr(contains(KEY).not())
}

// ---- TLS -------------------------------------------------------------------------------------

/// A server with TLS in front of a provider, and a sandbox to call it from. The file `ca.pem` in the sandbox has the
/// certificate of the authority that signed the server's.
struct Secure {
    sandbox: Sandbox,
    provider: FakeProvider,
    front: Front,
    signer: Signer,
}

impl Secure {
    fn new(identity: impl FnOnce(&Signer) -> Identity) -> Secure {
        let (sandbox, provider, signer) = (Sandbox::new(), FakeProvider::new(), Signer::new());
        sandbox.write("ca.pem", signer.pem());
        let front = Front::tls(&provider, identity(&signer));
        Secure { sandbox, provider, front, signer }
    }

    fn of(name: &str) -> Secure {
        Secure::new(|signer| signer.server(name))
    }

    fn call(&self, name: &str) -> Cmd {
        call(&self.sandbox, &self.front.url(name))
    }

    /// Checks that the server received nothing at all.
    #[track_caller]
    fn assert_received_nothing(&self) {
        assert_eq!((self.front.bytes(), self.provider.requests().len()), (0, 0));
    }
}

#[test]
fn t5_an_untrusted_certificate_ends_with_69_and_nothing_is_sent() {
    let server = Secure::of("localhost");
    // Trusting the certificate of another authority does not help.
    server.sandbox.write("other.pem", Signer::new().pem());
    let run = server.call("localhost").env("SSL_CERT_FILE", "other.pem").assert();
    assert_failed(run, 69, "invalid peer certificate: UnknownIssuer; install the system's CA");
    let run = server.call("localhost").args(["--ca", "other.pem"]).assert();
    assert_failed(run, 69, "invalid peer certificate");
    // A minimal system has no certificates. This is noticed before the program connects.
    let run = server.call("localhost").env("SSL_CERT_FILE", "/dev/null").assert();
    assert_failed(
        run,
        69,
        "No CA certificates were loaded from the system; install the system's CA",
    );
    let json = server.call("localhost").args(["--ca", "other.pem", "--log", "json"]).assert();
    assert_failed(json, 69, r#""class":"unreachable""#);
    assert_eq!(server.front.connections(), 3, "each call must connect once");
    server.assert_received_nothing();
}

#[test]
fn t6_a_given_certificate_is_trusted() {
    for name in ["localhost", "127.0.0.1"] {
        let server = Secure::of(name);
        assert_answered(server.call(name).args(["--ca", "ca.pem"]).assert());
        assert_answered(server.call(name).arg("--ca=ca.pem").arg("--stream=shown").assert());
        assert_answered(server.call(name).env("SSL_CERT_FILE", "ca.pem").assert());
        // A file of several certificates with text between them, as on most systems.
        let bundle = format!("# mine\n{}\n# ours\n{}", Signer::new().pem(), server.signer.pem());
        server.sandbox.write("bundle.pem", bundle);
        assert_answered(server.call(name).args(["--ca", "bundle.pem"]).assert());
        assert_answered(server.call(name).env("SSL_CERT_FILE", "bundle.pem").assert());
        assert_eq!(server.provider.requests().len(), 5);
        server.provider.all_legal();
    }
}

#[test]
fn t6_the_ca_option_adds_to_the_certificates_of_the_environment() {
    let server = Secure::of("localhost");
    server.sandbox.write("other.pem", Signer::new().pem());
    let with = |file: &str, ca: &str| {
        server.call("localhost").env("SSL_CERT_FILE", file).args(["--ca", ca]).assert()
    };
    assert_answered(with("ca.pem", "other.pem"));
    assert_answered(with("other.pem", "ca.pem"));
    assert_answered(with("missing.pem", "ca.pem"));
    // `SSL_CERT_FILE` replaces the certificates of the system.
    let run = server.call("localhost").env("SSL_CERT_FILE", "other.pem").assert();
    assert_failed(run, 69, "UnknownIssuer");
    let run = server.call("localhost").env("SSL_CERT_FILE", "missing.pem").assert();
    assert_failed(run, 69, "No CA certificates were loaded");
}

#[test]
fn t6_a_directory_of_certificates_is_trusted() {
    let server = Secure::of("localhost");
    // Files are named as by c_rehash; the value of the hash does not matter.
    server.sandbox.write("certificates/0a1b2c3d.0", server.signer.pem());
    assert_answered(server.call("localhost").env("SSL_CERT_DIR", "certificates").assert());
}

#[test]
fn t5_a_certificate_for_another_name_or_time_is_refused() {
    let other = Secure::of("other.example");
    let run = other.call("localhost").args(["--ca", "ca.pem"]).assert();
    assert_failed(run, 69, "certificate not valid for name \"localhost\"");
    other.assert_received_nothing();

    let expired = Secure::new(|signer| signer.expired_server("localhost"));
    let run = expired.call("localhost").args(["--ca", "ca.pem"]).assert();
    assert_failed(run, 69, "certificate expired");
    expired.assert_received_nothing();

    // A certificate for a name is not valid for its address.
    let plain = Secure::of("localhost");
    let run = plain.call("127.0.0.1").args(["--ca", "ca.pem"]).assert();
    assert_failed(run, 69, "certificate not valid for name");
    plain.assert_received_nothing();
}

#[test]
fn t6_a_file_without_certificates_ends_with_78() {
    let server = Secure::of("localhost");
    let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cut: String = server.signer.pem().chars().take(200).collect();
    let good_and_bad = server.signer.pem() + junk;
    let files = [("empty", ""), ("text", "no certificate\n"), ("junk", junk), ("cut", &cut)];
    for (name, text) in files.into_iter().chain([("half", &*good_and_bad)]) {
        server.sandbox.write(name, text);
        let run = server.call("localhost").args(["--ca", name]).assert();
        assert_failed(run, 78, &format!("cannot use certificates '{name}'"));
    }
    assert_failed(server.call("localhost").args(["--ca", "missing"]).assert(), 74, "'missing'");
    assert_eq!(server.front.connections(), 0);
}

// ---- redirects -------------------------------------------------------------------------------

#[test]
fn t5_no_redirect_is_followed_to_any_host() {
    let (provider, other) = (FakeProvider::new(), FakeProvider::new());
    for status in [301, 302, 303, 307, 308] {
        let (own, far) = (provider.url() + "/elsewhere", other.url() + MESSAGES);
        for to in [&own, &far, "/elsewhere", "//localhost/", "https://localhost/"] {
            let asked = provider.requests().len();
            let headers = vec![("location".to_owned(), to.to_owned())];
            provider.script(Step::Raw { status, headers, body: vec![] });
            let run = call(&Sandbox::new(), &provider.url()).assert();
            assert_failed(run, 76, &format!("not-found (rule status-3xx): HTTP {status}"))
                .stderr(contains(format!("; redirects to '{to}' (redirects are not followed)")));
            assert_eq!(provider.requests().len(), asked + 1, "{status} {to}");
        }
    }
    assert!(provider.requests().iter().all(|request| request.path == MESSAGES));
    assert_eq!(other.requests().len(), 0, "the second server got the key");
    provider.all_legal();
}

// ---- plain http ------------------------------------------------------------------------------

#[test]
#[expect(clippy::print_stderr, reason = "the test reports that it was skipped")]
fn t5_plain_http_to_another_machine_needs_an_option() {
    let Some(ip) = own_address() else {
        eprintln!("skipped: this machine has no address but loopback");
        return;
    };
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let front = Front::new(&provider, ip, None);
    let url = format!("http://{}", front.address());
    assert_failed(call(&sandbox, &url).assert(), 78, "cannot send to");
    assert_failed(call(&sandbox, &url).arg("--count").assert(), 78, "needs --insecure-http");
    assert_eq!(front.connections(), 0);
    assert_answered(call(&sandbox, &url).arg("--insecure-http").assert());
    assert_eq!(provider.single_request().header("x-api-key"), Some(KEY));
    // The option does not allow other protocols.
    let run = call(&sandbox, &url.replace("http:", "ftp:")).arg("--insecure-http").assert();
    assert_failed(run, 78, "not an https address");
}

#[test]
fn t6_an_invalid_address_ends_with_78() {
    for url in [
        "https://",
        "localhost:1",
        "https://localhost:x",
        "http://127.0.0.1:99999",
        "https://a b",
        "https://[::1",
    ] {
        assert_failed(call(&Sandbox::new(), url).assert(), 78, "cannot send to '");
    }
}

#[test]
fn t5_an_address_with_a_password_is_refused_without_showing_it() {
    let (sandbox, provider) = (Sandbox::new(), FakeProvider::new());
    let place = provider.url().replace("http://", "");
    for url in [
        format!("http://user:pass-word@{place}"),
        format!("http://:pass-word@{place}/v1"),
        format!("http://pass-word@{place}/"),
        format!("https://user:pass-word@{place}"),
        format!("https:///user:pass-word@{place}"),
        format!("http:/\\user:pass-word@{place}"),
        format!("https://user:pass-word@{place}/v1?x=@"),
        format!("https://a@b:pass-word@{place}"),
        format!("user:pass-word@{place}"),
    ] {
        for args in [&[][..], &["--insecure-http"], &["--insecure-http", "--log", "json"]] {
            let run = call(&sandbox, &url).args(args).assert();
            assert_failed(run, 78, "cannot send").stderr(contains("pass-word").not());
        }
        call(&sandbox, &url).arg("--dry-run").assert().stderr(contains("pass-word").not());
    }
    let ollama = sandbox.cmd("claw-call").env("OLLAMA_HOST", format!("http://u:pass-word@{place}"));
    let ollama = ollama.args(["--provider", "ollama", "--model", "m"]).write_stdin(HELLO).assert();
    assert_failed(ollama, 78, "cannot send").stderr(contains("pass-word").not());
    assert!(provider.requests().is_empty());
}

// ---- proxies ---------------------------------------------------------------------------------

/// Returns a `claw-call` command with the proxy in `HTTPS_PROXY`.
fn by_proxy(server: &Secure, url: &str, proxy: &str) -> Cmd {
    let cmd = call(&server.sandbox, url).args(["--ca", "ca.pem"]);
    cmd.env_remove("NO_PROXY").env("HTTPS_PROXY", proxy)
}

#[test]
fn t6_https_uses_the_proxy_which_learns_only_the_host_name() {
    let server = Secure::of(ELSEWHERE);
    let proxy = Proxy::to(server.front.address());
    let url = format!("https://{ELSEWHERE}");
    assert_answered(by_proxy(&server, &url, &proxy.url()).assert());
    for name in ["https_proxy", "ALL_PROXY", "all_proxy"] {
        let cmd = by_proxy(&server, &url, "").env_remove("HTTPS_PROXY");
        assert_answered(cmd.env(name, proxy.url()).assert());
    }
    assert_answered(by_proxy(&server, &url, &proxy.url()).env("NO_PROXY", "example.org").assert());
    let heads = proxy.heads();
    assert_eq!(heads.len(), 5);
    for head in heads {
        assert!(head.starts_with(&format!("CONNECT {ELSEWHERE}:443 HTTP/1.1\r\n")), "{head}");
        let lower = head.to_ascii_lowercase();
        for word in [KEY, "x-api-key", "authorization", "hello", MODEL] {
            assert!(!lower.contains(&word.to_ascii_lowercase()), "{word} in {head}");
        }
    }
    assert!(server.provider.requests().iter().all(|r| r.header("x-api-key") == Some(KEY)));
    server.provider.all_legal();
}

/// Nothing is sent through a proxy that presents a certificate of its own.
#[test]
fn t5_an_intercepting_proxy_learns_nothing() {
    let server = Secure::of(ELSEWHERE);
    let listening = Secure::of(ELSEWHERE);
    let proxy = Proxy::to(listening.front.address());
    let run = by_proxy(&server, &format!("https://{ELSEWHERE}"), &proxy.url()).assert();
    assert_failed(run, 69, "invalid peer certificate");
    listening.assert_received_nothing();
}

#[test]
fn t6_the_variable_no_proxy_is_honoured() {
    let server = Secure::of(ELSEWHERE);
    let proxy = Proxy::to(server.front.address());
    let url = format!("https://{ELSEWHERE}");
    for exception in [ELSEWHERE, ".invalid", "*", "example.org, provider.invalid"] {
        let run = by_proxy(&server, &url, &proxy.url()).env("NO_PROXY", exception).assert();
        assert_failed(run, 69, "unreachable");
    }
    if let Some(ip) = own_address() {
        let (name, url) = (ip.to_string(), |front: &Front| format!("https://{}", front.address()));
        let here = Secure::of(&name);
        let front = Front::new(&here.provider, ip, Some(here.signer.server(&name)));
        assert_answered(
            by_proxy(&here, &url(&front), &proxy.url()).env("NO_PROXY", &name).assert(),
        );
    }
    assert_eq!(proxy.heads(), [""; 0]);
}

#[test]
fn t6_an_address_on_this_machine_uses_no_proxy() {
    let server = Secure::of("localhost");
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"] {
        let proxy = Proxy::refusing("403 Forbidden");
        for url in [&server.front.url("localhost"), &server.provider.url()] {
            let cmd = by_proxy(&server, url, "").env_remove("HTTPS_PROXY");
            assert_answered(cmd.env(name, proxy.url()).assert());
        }
        assert_eq!(proxy.heads(), [""; 0], "{name}");
    }
    // claw-call does not require a key for an address on this machine, but this server does.
    let run = by_proxy(&server, &server.front.url("localhost"), "").env_remove("ANTHROPIC_API_KEY");
    assert_failed(run.assert(), 77, "x-api-key header is required");
}

/// Unencrypted requests are sent to the proxy as plain http.
#[test]
fn t6_plain_http_to_another_machine_uses_http_proxy() {
    let proxy = Proxy::refusing("403 Forbidden");
    let cmd = call(&Sandbox::new(), &format!("http://{ELSEWHERE}")).env_remove("NO_PROXY");
    let cmd = cmd.env("HTTPS_PROXY", "http://127.0.0.1:1").env("http_proxy", proxy.url());
    assert_failed(cmd.arg("--insecure-http").assert(), 77, "permission");
    let heads = proxy.heads();
    let first = format!("POST http://{ELSEWHERE}/v1/messages HTTP/1.1\r\n");
    assert!(heads.len() == 1 && heads[0].starts_with(&first), "{heads:?}");
}

#[test]
fn t6_a_proxy_that_refuses_or_is_down_ends_with_69() {
    let server = Secure::of(ELSEWHERE);
    let url = format!("https://{ELSEWHERE}");
    for (status, why) in [
        ("403 Forbidden", "HTTPS_PROXY is set"),
        ("407 Proxy Authentication Required", "proxy authorization required"),
        ("502 Bad Gateway", "HTTPS_PROXY is set"),
    ] {
        let proxy = Proxy::refusing(status);
        let with_password = proxy.url().replace("http://", "http://user:pass-word@");
        let run = by_proxy(&server, &url, &with_password).assert();
        assert_failed(run, 69, "unreachable")
            .stderr(contains(why))
            .stderr(contains("pass-word").not());
        assert_eq!(proxy.heads().len(), 1);
    }
    let gone = Proxy::refusing("").url();
    let run = by_proxy(&server, &url, &gone).assert();
    assert_failed(run, 69, "unreachable").stderr(contains("HTTPS_PROXY is set"));
}

// ---- the address that a base URL gives -------------------------------------------------------

/// Returns the address that a dry run shows.
fn shown(provider: &str, name: &str, base: &str) -> String {
    let cmd = Sandbox::new().cmd("claw-call").args(["--provider", provider, "--model", "m"]);
    let run =
        cmd.args(["--dry-run", "--insecure-http"]).env(name, base).write_stdin(HELLO).assert();
    let first = run.success().stderr_text().lines().next().map(str::to_owned).unwrap_or_default();
    first.replace("claw-call: would send POST ", "")
}

#[test]
fn t6_a_base_url_gives_the_documented_address() {
    for (provider, own, usual) in [
        ("anthropic", "ANTHROPIC_BASE_URL", "https://api.anthropic.com/v1/messages"),
        ("openai", "OPENAI_BASE_URL", "https://api.openai.com/v1/chat/completions"),
        ("ollama", "OLLAMA_HOST", "http://127.0.0.1:11434/api/chat"),
    ] {
        assert_eq!(shown(provider, own, ""), usual);
    }
    let a = "https://a.example";
    for (provider, base, path) in [
        ("anthropic", "", "/v1/messages"),
        ("anthropic", "/", "/v1/messages"),
        ("anthropic", "/v1", "/v1/messages"),
        ("anthropic", "/v1/", "/v1/messages"),
        ("anthropic", "//", "/v1/messages"),
        ("anthropic", "/anthropic", "/anthropic/v1/messages"),
        ("anthropic", "/anthropic/v1/", "/anthropic/v1/messages"),
        ("openai", "", "/v1/chat/completions"),
        ("openai", "/", "/v1/chat/completions"),
        ("openai", "/v1", "/v1/chat/completions"),
        ("openai", "/v1/", "/v1/chat/completions"),
        ("openai", "/api/v1", "/api/v1/chat/completions"),
        ("openai", "/api/v1/", "/api/v1/chat/completions"),
        ("openai", "/v1beta/openai/", "/v1beta/openai/chat/completions"),
        ("openai", "/paas/v4", "/paas/v4/chat/completions"),
        ("openai", "/vllm", "/vllm/v1/chat/completions"),
        ("ollama", "", "/api/chat"),
        ("ollama", "/", "/api/chat"),
        ("ollama", "/api", "/api/chat"),
        ("ollama", "/api/", "/api/chat"),
        ("ollama", "/v1/", "/api/chat"),
        ("ollama", "/ollama/", "/ollama/api/chat"),
    ] {
        let url = shown(provider, "CLAW_BASE_URL", &format!("{a}{base}"));
        assert_eq!(url, format!("{a}{path}"), "{provider} {base}");
    }
    // A host that begins with `v1`, and a port, do not change the path.
    let port = shown("openai", "CLAW_BASE_URL", "http://v1.example:8080/");
    assert_eq!(port, "http://v1.example:8080/v1/chat/completions");
}

#[test]
fn t6_the_address_shown_is_the_address_used() {
    for (provider, path) in
        [("anthropic", MESSAGES), ("openai", "/v1/chat/completions"), ("ollama", "/api/chat")]
    {
        for end in ["", "/", "/v1", "/v1/"] {
            let fake = FakeProvider::new();
            let base = fake.url() + end;
            assert_eq!(shown(provider, "CLAW_BASE_URL", &base), fake.url() + path);
            let cmd = Sandbox::new().cmd("claw-call").args(["--provider", provider]);
            let cmd = cmd.args(["--model", "m", "--base-url", &base, "--key-cmd", "echo key"]);
            cmd.write_stdin(HELLO).assert().success();
            assert_eq!(fake.single_request().path, path);
            fake.all_legal();
        }
    }
}
