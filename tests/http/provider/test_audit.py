"""What is noted of tokens and keys (A-184), and what never is (A-183)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from podstead.app.adapters.provider_keys import KeyFolder
from podstead.storage.keys import KeyFiles
from tests.support.clock import FakeClock
from tests.support.provider_flows import App, Provider

DAY_S = 86_400
CODE_REUSED = "code used again: all that came of it ended"
TOKEN_REUSED = "refresh token used again: all that came of its grant ended"
KEY_MADE, KEY_REMOVED = "signing key made", "signing key removed"


@pytest.fixture(autouse=True)
def _all_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")


def noted(caplog: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """What was noted since the last call, with its facts."""
    records = [each for each in caplog.records if each.name == "podstead.audit"]
    caplog.clear()
    return [(each.getMessage(), vars(each)) for each in records]


async def test_the_second_use_of_a_code_is_noted_once(
    provider: Provider, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    code = await provider.code(app)
    tokens = (await provider.redeem(app, code)).json()
    assert noted(caplog) == []
    for _ in range(3):
        assert (await provider.redeem(app, code)).status == 400
    logged = " ".join(str(vars(record)) for record in caplog.records)
    [(event, facts)] = noted(caplog)
    assert (event, facts["account"]) == (CODE_REUSED, provider.account.account_id)
    assert (facts["client_id"], facts["levelno"]) == (app.client_id, logging.WARNING)
    given_out = [str(tokens[f"{kind}_token"]) for kind in ("access", "refresh", "id")]
    for secret in (code, str(app.secret), app.verifier, *given_out):
        assert secret not in logged


async def test_the_second_use_of_a_refresh_token_is_noted_once_however_many_come_at_once(
    provider: Provider, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    first = (await provider.tokens(app))["refresh_token"]
    await asyncio.gather(*(provider.refresh(app, first) for _ in range(10)))
    [(event, facts)] = noted(caplog)
    assert (event, facts["account"]) == (TOKEN_REUSED, provider.account.account_id)
    assert (facts["client_id"], facts["levelno"]) == (app.client_id, logging.WARNING)
    assert first not in str(facts)


async def test_a_code_of_another_client_or_one_that_is_over_is_not_noted_as_used_again(
    provider: Provider, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    other = await provider.register()
    code = await provider.code(app)
    await provider.redeem(other, code)
    provider.clock.advance(3600)
    await provider.redeem(app, code)
    await provider.refresh(app, "no such token")
    assert noted(caplog) == []


def test_created_and_removed_keys_are_recorded_with_their_actor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    (tmp_path / "keys").mkdir(mode=0o700)
    folder, other = (KeyFolder(KeyFiles(tmp_path / "keys"), clock) for _ in range(2))
    folder.maintain()
    assert events(caplog) == [], "those that a server begins with replace none"
    clock.advance(89 * DAY_S)
    other.maintain()
    folder.maintain()
    assert events(caplog) == [(KEY_MADE, "ES256"), (KEY_MADE, "RS256")]
    clock.advance(20 * DAY_S)
    folder.maintain()
    other.maintain()
    assert events(caplog) == [(KEY_REMOVED, "ES256"), (KEY_REMOVED, "RS256")]
    folder.replace_all()
    assert events(caplog) == [
        (KEY_MADE, "ES256"),
        (KEY_MADE, "RS256"),
        (KEY_REMOVED, "ES256"),
        (KEY_REMOVED, "RS256"),
    ]


def events(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Events of keys with their algorithms; each names a key by its public id alone."""
    found = []
    for event, facts in noted(caplog):
        assert len(facts["key_id"]) == 43
        found.append((event, facts["algorithm"]))
    return sorted(found)
