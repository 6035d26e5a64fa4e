"""HTTP dates mean the same in every time zone of the server (RFC 9110 section 5.6.7)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from podstead.core.conditional import parse_http_date

EXAMPLE_S = 784_111_777
"""The example of RFC 9110: 6 November 1994 at 08:49:37 UTC."""

FORMS = [
    "Sun, 06 Nov 1994 08:49:{} GMT",
    "Sunday, 06-Nov-94 08:49:{} GMT",
    "Sun Nov  6 08:49:{} 1994",
    "Sun, 06 Nov 1994 08:49:{} -0000",
]
# A second of its own for each, since what was read before is remembered.
ZONES = {"UTC": 37, "America/Los_Angeles": 38, "Pacific/Kiritimati": 39}


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """This process in a zone of the world."""
    zone = str(request.param)
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    yield zone
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_date_is_in_utc(zone: str, form: str) -> None:
    second = ZONES[zone]
    assert parse_http_date(form.format(second)) == EXAMPLE_S - 37 + second


@pytest.mark.parametrize(
    "text", ["", "now", "784111777", "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 99999 08:49:37"]
)
def test_an_invalid_date_is_none(text: str) -> None:
    assert parse_http_date(text) is None
