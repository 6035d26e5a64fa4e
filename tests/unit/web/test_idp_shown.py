"""How the account page names browsers and days."""

from __future__ import annotations

import pytest

from podstead.web.browsers import browser_name
from podstead.web.idp.display import format_day, machine_time
from podstead.web.pages.rendering import form_source

_WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (f"Mozilla/5.0 (Windows NT 10.0; Win64) {_CHROME} Safari/537.36", "Chrome on Windows"),
        (f"Mozilla/5.0 (Windows NT 10.0) {_CHROME} Safari/537.36 Edg/141.0", "Edge on Windows"),
        (f"Mozilla/5.0 (Macintosh) {_WEBKIT} Version/18.5 Safari/605.1.15", "Safari on Mac"),
        (f"Mozilla/5.0 (iPhone) {_WEBKIT} CriOS/141.0 Safari/604.1", "Chrome on iPhone"),
        (f"Mozilla/5.0 (Linux; Android 15) {_CHROME} Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko Firefox/140.0", "Firefox on Linux"),
        ("Mozilla/5.0 (X11; Linux x86_64) Something/1.0", "A browser on Linux"),
        ("curl/8.7.1", "A program"),
        ("", "A program"),
    ],
)
def test_a_browser_is_named_as_people_know_it(user_agent: str, name: str) -> None:
    assert browser_name(user_agent) == name


def test_days_are_written_for_people_and_for_programs() -> None:
    assert format_day(1_746_230_400) == "3 May 2025"
    assert machine_time(1_746_230_400) == "2025-05-03T00:00:00Z"


@pytest.mark.parametrize(
    ("url", "source"),
    [
        ("https://app.example/callback?x=1", "https://app.example"),
        ("https://app.example:8443/", "https://app.example:8443"),
        ("http://[::1]:3000/", "http:"),
        ("https://a;sandbox/", "https:"),
        ("https://a'b/", "https:"),
        ("com.example.app:/callback", "com.example.app:"),
    ],
)
def test_a_policy_names_where_a_form_may_lead(url: str, source: str) -> None:
    """A-45: nothing in an application's address writes into the policy."""
    assert form_source(url) == source
