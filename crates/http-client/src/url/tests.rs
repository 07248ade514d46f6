//! What is an address, where it leads, and that no password of it is repeated.

use super::*;

#[test]
fn urls() {
    let table = [
        (
            "http://127.0.0.1:8080/v1",
            "http://127.0.0.1:8080/v1",
            "127.0.0.1:8080",
        ),
        (
            "https://API.openai.com/v1/",
            "https://api.openai.com/v1",
            "api.openai.com:443",
        ),
        ("HTTP://localhost", "http://localhost", "localhost:80"),
        (
            "http://[::1]:11434/v1",
            "http://[::1]:11434/v1",
            "[::1]:11434",
        ),
        (
            "https://x.example:8443",
            "https://x.example:8443",
            "x.example:8443",
        ),
    ];
    for (url, shown, reached) in table {
        let parsed = BaseUrl::parse(url).unwrap();
        assert_eq!(
            (
                parsed.to_string().as_str(),
                parsed.host_port().to_string().as_str()
            ),
            (shown, reached),
            "{url}"
        );
    }
}

#[test]
fn which_hosts_are_public() {
    let near = "localhost LOCALHOST. a.localhost ollama nas.local x.home.arpa db.internal 127.0.0.1 127.9.9.9 10.1.2.3 \
                172.16.0.1 192.168.1.9 169.254.1.1 100.64.0.9 0.0.0.0 [::1] [fd00::1] [fe80::1] [::ffff:10.0.0.1]";
    let public = "api.example.com example.com. 8.8.8.8 172.32.0.1 134744072 0x8080808 [2606:4700::1] [::ffff:8.8.8.8] \
                  local.example.com localhost.example.com 10.0.0.1.nip.io notlocal.net";
    for (hosts, is) in [(near, false), (public, true)] {
        for host in hosts.split_whitespace() {
            assert_eq!(
                BaseUrl::parse(&format!("http://{host}:8080/v1"))
                    .unwrap()
                    .is_public(),
                is,
                "{host}"
            );
        }
    }
}

#[test]
fn a_suffix_is_dropped_from_the_end() {
    for (url, base) in [
        ("http://x/a/b/", "http://x/a"),
        ("http://x/b/a", "http://x/b/a"),
        ("http://x", "http://x"),
    ] {
        assert_eq!(BaseUrl::parse(url).unwrap().without("/b").to_string(), base);
    }
}

#[test]
fn bad_urls_are_refused_and_passwords_not_repeated() {
    let table = [
        "",
        "localhost:8080",
        "ftp://x",
        "http://",
        "http://:80",
        "http://x:0",
        "http://x:99999",
        "http://x:a",
        "http://x/?a=b",
        "http://x/#f",
        "http://[::1",
        "http://[zz]",
        "http://[::1]x",
        "http://a b",
        "http://é/v1",
        "http://x/\r\nevil: 1",
    ];
    for url in table {
        assert_eq!(
            BaseUrl::parse(url).map_err(|bad| bad.kind()),
            Err(ErrorKind::FixInput),
            "{url:?}"
        );
    }
    let long = format!("https://me:{}hunter2@x.example/v1", "p".repeat(300));
    for url in [
        "https://me:hunter2@x.example/v1",
        "me:hunter2@x.example/v1",
        "me:hunter2@http://x.example",
        long.as_str(),
    ] {
        let text = BaseUrl::parse(url).unwrap_err().to_string();
        assert!(
            !text.contains("hunter2") && !text.contains("ppp") && text.contains("x.example"),
            "{text}"
        );
        let text = Url::parse(url).unwrap_err().to_string();
        assert!(!text.contains("hunter2") && !text.contains("ppp"), "{text}");
    }
}

#[test]
fn addresses() {
    let table = [
        ("https://Docs.Example.org", "https://docs.example.org/"),
        ("HTTP://x:80/a/./b/../c?q=1#f", "http://x/a/c?q=1"),
        ("https://x?q#f", "https://x/?q"),
        ("https://x:8443/ä b\"", "https://x:8443/%C3%A4%20b%22"),
        ("https://x/%2e%2e/%41?a=%20", "https://x/%41?a=%20"),
        ("http://[::1]:90/x", "http://[::1]:90/x"),
        ("https://x/../../..", "https://x/"),
        ("https://x\\@y/z", "https://x/@y/z"),
        ("https://x/a\r\nb", "https://x/ab"),
        ("https://é.org/", "https://xn--9ca.org/"),
        ("https://0x7f.1/", "https://127.0.0.1/"),
    ];
    for (text, shown) in table {
        assert_eq!(Url::parse(text).unwrap().to_string(), shown, "{text}");
    }
}

#[test]
fn refused() {
    let long = format!("https://x/{}", "a".repeat(MAX_URL));
    let table = [
        "",
        "x.org",
        "ftp://x/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://",
        "https://me:pw@x/",
        "https://me@x/",
        "https://x:0/",
        "https://x:70000/",
        "https://a b/",
        "https://[::1",
        "https://x%00/",
        &long,
    ];
    for text in table {
        assert!(Url::parse(text).is_err(), "{text:?}");
    }
    let said = Url::parse("https://me:hunter2@x/").unwrap_err().to_string();
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn references() {
    let base = Url::parse("https://x.org/a/b/c?d=1").unwrap();
    let table = [
        ("", "https://x.org/a/b/c?d=1"),
        ("#f", "https://x.org/a/b/c?d=1"),
        ("?e", "https://x.org/a/b/c?e"),
        ("e", "https://x.org/a/b/e"),
        ("../e#f", "https://x.org/a/e"),
        ("./", "https://x.org/a/b/"),
        ("/e", "https://x.org/e"),
        ("//y.org/e", "https://y.org/e"),
        ("http://y.org", "http://y.org/"),
        ("e:f/../g", ""),
        ("./e:f", "https://x.org/a/b/e:f"),
        ("mailto:x@y", ""),
        ("data:text/html,x", ""),
        ("\\\\y.org\\e", "https://y.org/e"),
    ];
    for (reference, want) in table {
        let joined = base
            .join(reference)
            .map(|url| url.to_string())
            .unwrap_or_default();
        assert_eq!(joined, want, "{reference}");
    }
}
