"""Which URLs may be fetched, by their text (A-187, A-190)."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.outbound.errors import Refusal, Refused
from podstead.outbound.urls import (
    AddressScope,
    Origin,
    Target,
    UrlRules,
    is_loopback_host,
    parse_origin,
    resolve_reference,
)

STRICT = UrlRules()
LOOPBACK = UrlRules(loopback_allowed=True)


def refusal(rules: UrlRules, url: str) -> Refusal:
    """The rule that refuses the URL."""
    with pytest.raises(Refused) as caught:
        rules.admit(url)
    return caught.value.refusal


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://pod.example/", "https://pod.example/"),
        ("https://pod.example", "https://pod.example/"),
        ("HTTPS://Pod.EXAMPLE:443/A%2fb?q=%7E#me", "https://pod.example/A%2fb?q=%7E"),
        ("https://pod.example:8443/x", "https://pod.example:8443/x"),
        ("https://pod.example:65535?x", "https://pod.example:65535/?x"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2606:4700:0:0::1111]/", "https://[2606:4700::1111]/"),
        ("https://bücher.example/é?ü", "https://xn--bcher-kva.example/%C3%A9?%C3%BC"),
        ("https://fa\u00df.example/", "https://xn--fa-hia.example/"),
        ("https://pod\u3002exa\u00admple/", "https://pod.example/"),
        ("https://xn--i-7iq.example/", "https://xn--i-7iq.example/"),
        ("https://a_b.example/", "https://a_b.example/"),
        ("https://1.2.3.example/", "https://1.2.3.example/"),
    ],
)
def test_a_public_https_url_is_admitted_in_canonical_form(url: str, canonical: str) -> None:
    """A-187: parse, IDNA as browsers do it, ports; the fragment is not sent."""
    assert STRICT.admit(url).url == canonical


def test_an_admitted_url_is_taken_apart_once() -> None:
    """A-187."""
    assert LOOPBACK.admit("http://[::1]:3001/x") == Target(
        url="http://[::1]:3001/x",
        scheme="http",
        host="::1",
        port=3001,
        literal=LOOPBACK.admit("http://[0:0::1]/").literal,
        reach=AddressScope.LOOPBACK,
    )
    assert STRICT.admit("https://Pod.example:8443/x").origin == "https://pod.example:8443"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "pod.example",
        "//pod.example/",
        "https:pod.example",
        "https:/pod.example",
        "https:///pod.example",
        "https://",
        "https://?x",
        " https://pod.example/",
        "https://pod.example/ ",
        "https://pod.example/a b",
        "ht\ttps://pod.example/",
        "https://pod.ex\nample/",
        "https://pod.example/\r\nX: y",
        "https://pod.example\\@evil.example/",
        "https:\\\\pod.example/",
        "https://pod.example/\x00",
        "https://pod.example/\x85",
        'https://pod.example/"',
        "https://pod.example/<x>",
        "https://pod.example/\ud800",
        "https://pod.example:/",
        "https://pod.example:443:443/",
        "https://pod.example:4x3/",
        "https://pod.example:-1/",
        "https://pod.example:\u0664\u0664\u0663/",
        "https://[::1/",
        "https://::1/",
        "https://[::1]x/",
        "https://x[::1]/",
        "https://" + "a" * 2041,
    ],
)
def test_a_url_that_parsers_would_repair_or_read_differently_is_refused(url: str) -> None:
    """A-187: nothing is repaired."""
    assert refusal(STRICT, url) is Refusal.MALFORMED


@pytest.mark.parametrize("length", [2048, 2049])
def test_the_length_of_a_url_is_limited(length: int) -> None:
    """At the limit and one past it."""
    url = "https://pod.example/".ljust(length, "a")
    if length == 2048:
        assert STRICT.admit(url).url == url
    else:
        assert refusal(STRICT, url) is Refusal.MALFORMED


@pytest.mark.parametrize(
    "url",
    ["http://pod.example/", "ftp://pod.example/", "file://pod.example/etc", "gopher://p.example/"],
)
@pytest.mark.parametrize("rules", [STRICT, LOOPBACK])
def test_only_https_is_fetched_from_public_origins(rules: UrlRules, url: str) -> None:
    """A-187: http only for the exceptions of A-190."""
    assert refusal(rules, url) is Refusal.SCHEME


@pytest.mark.parametrize(
    "url", ["https://a@pod.example/", "https://a:b@pod.example/", "https://@pod.example/"]
)
def test_a_url_with_credentials_is_refused(url: str) -> None:
    """A-187: no userinfo."""
    assert refusal(STRICT, url) is Refusal.CREDENTIALS


@pytest.mark.parametrize(
    "host",
    [
        *("0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "127.1", "127.0.1"),
        *("127.0.0.01", "1.2.3.4.5", "256.1.1.1", "08.8.8.8", "0x", "1.2.3.0x4", "8.8.8.0x8"),
        *("\uff18.8.8", "\u0663.example.1", "pod.123", "pod.0xff"),
    ],
)
@pytest.mark.parametrize("rules", [STRICT, LOOPBACK])
def test_an_ipv4_address_in_an_unusual_notation_is_refused(rules: UrlRules, host: str) -> None:
    """A-187: decimal, octal, hex and short notations."""
    assert refusal(rules, f"https://{host}/") is Refusal.HOST


@pytest.mark.parametrize(
    "host",
    [
        *("pod..example", ".pod.example", "pod.example.", ".", "-a.example", "a-.example"),
        *(
            "a%2eb",
            "%31%32%37.0.0.1",
            "a,b",
            "a!b",
            "a*b",
            "a" * 64 + ".example",
            "a." * 127 + "ab",
        ),
        *("[::1%25lo]", "[fe80::1%eth0]", "[v1.x]", "[]", "[1.2.3.4]", "[::ffff:1.2.3]"),
        *("\u00ad", "ex\uff0fample", "xn--\u00fc.example", "i\u2764.example"),
    ],
)
def test_a_host_that_is_not_a_plain_name_is_refused(host: str) -> None:
    """A-187: every label is a plain one, and nothing is decoded or dropped."""
    assert refusal(STRICT, f"https://{host}/") is Refusal.HOST


def test_full_width_digits_do_not_hide_an_address() -> None:
    """A-187: IDNA mapping comes before the look at notations."""
    assert refusal(STRICT, "https://\uff11\uff12\uff17.0.0.1/") is Refusal.HOST
    assert STRICT.admit("https://\uff18.8.8.8/").literal is not None


@pytest.mark.parametrize("port", [443, 1024, 8443, 3000, 65535])
def test_the_https_port_and_unprivileged_ports_are_open(port: int) -> None:
    """A-187."""
    assert STRICT.admit(f"https://pod.example:{port}/").port == port


@pytest.mark.parametrize(
    "port", [0, 1, 22, 25, 80, 442, 444, 1023, 2049, 6000, 6666, 6697, 10080, 65536, 99999]
)
def test_privileged_and_bad_ports_are_closed(port: int) -> None:
    """A-187: 443, 8443 or from 1024 on, minus the bad ports of WHATWG."""
    assert refusal(STRICT, f"https://pod.example:{port}/") is Refusal.PORT


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "a.localhost", "127.0.0.1", "[::1]"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_loopback_is_refused_in_a_strict_deployment_and_open_in_a_loopback_one(
    scheme: str, host: str
) -> None:
    """A-190: by http or https, at any port."""
    url = f"{scheme}://{host}:22/"
    assert refusal(STRICT, url) in (Refusal.HOST, Refusal.SCHEME)
    assert LOOPBACK.admit(url).reach is AddressScope.LOOPBACK


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "[::ffff:127.0.0.1]", "[::]", "0.0.0.0", "localhost.x"]
)
def test_a_loopback_deployment_listens_on_loopback_only(host: str) -> None:
    """A-190: everything else has the rules, and the reach, of the public network."""
    assert refusal(LOOPBACK, f"http://{host}/") is Refusal.SCHEME
    assert LOOPBACK.admit(f"https://{host}/").reach is AddressScope.PUBLIC


def test_a_listed_private_origin_is_open_exactly() -> None:
    """A-190, --allow-private-origin: scheme, host and port all count."""
    rules = UrlRules(private_origins=frozenset({parse_origin("http://Intranet.example:81/")}))
    assert rules.admit("http://intranet.example:81/x").reach is AddressScope.PRIVATE
    assert refusal(rules, "http://intranet.example:82/x") is Refusal.SCHEME
    assert refusal(rules, "https://intranet.example:81/x") is Refusal.PORT
    assert refusal(rules, "http://a.intranet.example:81/x") is Refusal.SCHEME


@pytest.mark.parametrize(
    ("own", "url"),
    [
        ("https://pod.example", "https://pod.example/x"),
        ("https://pod.example", "https://POD.example:443/x"),
        ("https://pod.example:8443", "https://pod.example:8443/"),
        ("http://localhost:3000", "http://localhost:3000/"),
        ("http://localhost:3000", "https://localhost:3000/"),
        ("http://localhost:3000", "http://127.0.0.1:3000/"),
        ("http://localhost:3000", "http://[::1]:3000/"),
        ("http://localhost:3000", "http://x.localhost:3000/"),
        ("http://127.0.0.1:3000", "http://localhost:3000/"),
    ],
)
def test_the_own_origin_is_never_fetched(own: str, url: str) -> None:
    """A-190: in any mode, even if listed as a private origin."""
    origins = frozenset({parse_origin(own)})
    rules = UrlRules(own_origins=origins, private_origins=origins, loopback_allowed=True)
    assert refusal(rules, url) is Refusal.OWN_ORIGIN


def test_a_neighbour_of_the_own_origin_is_foreign() -> None:
    """A-190: stub providers run on other loopback ports."""
    rules = UrlRules(
        own_origins=frozenset({parse_origin("http://localhost:3000")}), loopback_allowed=True
    )
    assert rules.admit("http://localhost:3001/").port == 3001


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://Pod.example", "https://pod.example"),
        ("https://pod.example:443/", "https://pod.example"),
        ("http://pod.example:443", "http://pod.example:443"),
        ("http://[0::1]:80", "http://[::1]"),
    ],
)
def test_an_origin_has_one_spelling(text: str, origin: str) -> None:
    """WHATWG URL, serialisation of an origin."""
    assert parse_origin(text) == Origin(origin)


@pytest.mark.parametrize(
    "text", ["https://p.example/x", "https://p.example?x", "https://p.example#"]
)
def test_more_than_an_origin_is_not_an_origin(text: str) -> None:
    """A setting that says more than it can mean is a mistake."""
    with pytest.raises(Refused):
        parse_origin(text)


@pytest.mark.parametrize(
    ("reference", "resolved"),
    [
        ("/x", "https://pod.example:8443/x"),
        ("x", "https://pod.example:8443/a/x"),
        ("../x?y", "https://pod.example:8443/x?y"),
        ("?y", "https://pod.example:8443/a/b?y"),
        ("//other.example/x", "https://other.example/x"),
        ("http://other.example:81/x", "http://other.example:81/x"),
    ],
)
def test_a_location_is_resolved_against_the_url_that_sent_it(reference: str, resolved: str) -> None:
    """RFC 3986 section 5.2."""
    assert resolve_reference("https://pod.example:8443/a/b?c", reference) == resolved


@pytest.mark.parametrize(
    "reference", ["\t//evil.example", "\\\\evil.example", "/ x", "ht\ntp://evil.example", "x\x00"]
)
def test_a_location_that_parsers_would_repair_is_refused(reference: str) -> None:
    """A-189: the same strictness on every hop."""
    with pytest.raises(Refused) as caught:
        resolve_reference("https://pod.example/", reference)
    assert caught.value.refusal is Refusal.MALFORMED


@given(st.text(max_size=40) | st.from_regex(r"https?:/?/?\S{0,40}", fullmatch=True))
def test_no_text_crashes_and_what_is_admitted_stays_itself(url: str) -> None:
    """A-187: admitting is idempotent, and a second parser reads the same host and port."""
    try:
        target = LOOPBACK.admit(url)
    except Refused:
        return
    assert LOOPBACK.admit(target.url) == target
    second = urlsplit(target.url)
    assert (second.scheme, second.hostname) == (target.scheme, target.host)
    assert (second.port or {"http": 80, "https": 443}[target.scheme]) == target.port
    assert second.username is None
    assert target.url.isascii()


@given(st.text(max_size=60))
def test_no_location_crashes(reference: str) -> None:
    """A-189: any text is resolved or refused by name."""
    try:
        resolved = resolve_reference("https://pod.example/a/b", reference)
        STRICT.admit(resolved)
    except Refused:
        pass


def test_loopback_hosts_are_names_and_literals() -> None:
    """A-190: localhost, *.localhost, 127/8, ::1."""
    assert all(map(is_loopback_host, ["localhost", "a.b.localhost", "127.9.9.9", "::1"]))
    assert not any(map(is_loopback_host, ["localhost.example", "notlocalhost", "128.0.0.1", "::2"]))
