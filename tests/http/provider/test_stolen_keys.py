"""Keys that may be stolen are of no use a minute after they were replaced, whoever asks (A-44)."""

from __future__ import annotations

import pytest

from podstead.app.operator.administration import existing_keys
from tests.support.provider_flows import PRIVATE, Provider, provider_settings

LOOKED_AT_AGAIN_AFTER_S = 60


async def bearer_token(provider: Provider) -> str:
    """A token that is bound to no key, so the same request may be repeated."""
    credential = await provider.add_credential("secret")
    form = {
        "grant_type": "client_credentials",
        "client_id": credential,
        "client_secret": "secret",
    }
    answer = await provider.token(form)
    assert answer.status == 200, answer.text
    return str(answer.json()["access_token"])


@pytest.mark.parametrize("compromised", [True, False])
async def test_an_answer_that_is_kept_ends_with_the_keys_of_its_token(
    provider: Provider, compromised: bool
) -> None:
    """Though nothing is written to the store meanwhile."""
    token = await bearer_token(provider)
    keys = existing_keys(provider_settings(provider.root), provider.clock)
    assert [await provider.get(token, None) for _ in range(3)] == [200] * 3
    if compromised:
        keys.replace_all()
    else:
        keys.rotate()
    provider.clock.advance(LOOKED_AT_AGAIN_AFTER_S)
    expected = 401 if compromised else 200
    assert [await provider.get(token, None, PRIVATE) for _ in range(3)] == [expected] * 3
