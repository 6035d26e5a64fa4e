"""Which redirect URIs may be registered, and which are the registered ones? (A-49)"""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstead.idp.client_metadata import is_usable_redirect, matches_redirect, redirect_host
from podstead.idp.records import Client

WEB = [
    "https://app.example",
    "https://tester",
    "https://app.example:8443/cb?x=1&y=%2F",
    "https://app.example/a/../b;c",
    "https://[2001:db8::1]/cb",
    "http://localhost:8080/cb",
    "http://127.0.0.1/cb",
    "http://[::1]:1234/cb",
    "HTTPS://APP.example/cb",
]
NATIVE_ONLY = ["com.example.app:/cb", "com.example.app://cb/x"]
DEVELOPMENT_ONLY = ["http://app.example/cb", "http://10.0.0.1/", "http://127.0.0.2/"]
NEVER = {
    "nothing": "",
    "relative": "/cb",
    "no scheme": "//app.example/cb",
    "a fragment": "https://app.example/#x",
    "an empty fragment": "https://app.example/#",
    "a user": "https://user@app.example/",
    "an empty user": "https://@app.example/",
    "a user and password": "https://user:pass@app.example/",
    "no host": "https:///cb",
    "no slashes": "https:app.example",
    "a script": "javascript:alert(1)",
    "data": "data:text/html,x",
    "a scheme without a dot": "myapp:/cb",
    "a line break": "https://app.example/\r\nset-cookie: a=b",
    "a space": "https://app.example/a b",
    "a quote": 'https://app.example/"onload=',
    "angle brackets": "https://app.example/<x>",
    "a backslash": "https://evil.example\\.app.example/",
    "a backslash in front of a user": "https://evil.example\\@app.example/",
    "a semicolon in the host": "https://evil.example;script-src/",
    "a comma in the host": "https://evil.example,app.example/",
    "a quote in the host": "https://evil.example'/",
    "an escape in the host": "https://evil.example%2f.app.example/",
    "letters that are not ASCII": "https://\u0430pp.example/",
    "a bad port": "https://app.example:99999/",
    "a port that is no number": "https://app.example:x/",
    "a bracket": "https://[::1/",
    "too long": "https://app.example/" + "x" * 2048,
}


@pytest.mark.parametrize("uri", WEB)
def test_https_and_this_machine_may_be_registered(uri: str) -> None:
    for application_type in ("web", "native"):
        assert is_usable_redirect(uri, application_type=application_type, allow_http=False)


@pytest.mark.parametrize("uri", NATIVE_ONLY)
def test_a_scheme_of_its_own_is_for_native_applications(uri: str) -> None:
    """RFC 8252 section 7.1"""
    assert is_usable_redirect(uri, application_type="native", allow_http=False)
    assert not is_usable_redirect(uri, application_type="web", allow_http=True)


@pytest.mark.parametrize("uri", DEVELOPMENT_ONLY)
def test_plain_http_to_other_hosts_is_for_development(uri: str) -> None:
    assert is_usable_redirect(uri, application_type="web", allow_http=True)
    assert not is_usable_redirect(uri, application_type="native", allow_http=False)


@pytest.mark.parametrize("uri", NEVER.values(), ids=NEVER)
def test_a_path_that_could_lead_elsewhere_is_never_accepted(uri: str) -> None:
    """Open redirects, headers, and policies that a name is put into"""
    for application_type in ("web", "native"):
        assert not is_usable_redirect(uri, application_type=application_type, allow_http=True)


@given(st.text(st.sampled_from("htps:/\\@[]#?.;,'\" a1%\n"), max_size=30))
def test_whatever_is_taken_leads_to_the_host_that_is_shown(rest: str) -> None:
    uri = f"https://{rest}"
    if is_usable_redirect(uri, application_type="web", allow_http=True):
        host = redirect_host(uri)
        assert host == urlsplit(uri).netloc
        assert not set(host) & set("\\@;,'\" %\n")


def client(*uris: str, application_type: str = "web") -> Client:
    return Client(
        "c", uris, (), "none", "ES256", registered=True, application_type=application_type
    )


def test_a_request_must_name_a_registered_uri_letter_by_letter() -> None:
    one = client("https://app.example/cb", "https://tester")
    assert matches_redirect("https://app.example/cb", one)
    assert matches_redirect("https://tester", one)
    for other in (
        "https://app.example/cb/",
        "https://app.example/CB",
        "https://APP.example/cb",
        "https://app.example:443/cb",
        "https://app.example/cb?x",
        "https://app.example/cb/../cb",
        "https://tester/",
        "https://tester.evil.example",
        "",
    ):
        assert not matches_redirect(other, one), other


def test_a_native_application_chooses_its_port_on_this_machine() -> None:
    """RFC 8252 section 7.3"""
    uris = ("http://127.0.0.1/cb", "http://[::1]/cb", "https://app.example/cb")
    native, web = client(*uris, application_type="native"), client(*uris)
    for uri in ("http://127.0.0.1:5555/cb", "http://[::1]:1/cb"):
        assert matches_redirect(uri, native)
        assert not matches_redirect(uri, web)
    for uri in (
        "http://127.0.0.1:5555/other",
        "http://127.0.0.1:5555/cb?x",
        "http://localhost:5555/cb",
        "http://user@127.0.0.1:5555/cb",
        "http://127.0.0.1:5555/cb#",
        "http://127.0.0.1:5555/cb#x",
        "https://app.example:444/cb",
        "https://127.0.0.1:5555/cb",
    ):
        assert not matches_redirect(uri, native), uri
