"""A token of this provider that is ended while a body arrives is not good for storing it (A-76)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from podstead.idp.records import REFRESH_TOKENS
from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.provider_flows import App, Provider

NEW = "/alice/private/new"
ENDS = ["its revocation", "that of its grant", "the account's disabling", "all tokens' end"]


async def end(provider: Provider, app: App, tokens: dict[str, str], how: str) -> None:
    now_s = provider.clock.now_s()
    match how:
        case "its revocation":
            form = {"token": tokens["access_token"]}
            assert (await provider.ask(app, "/idp/token/revocation", form)).status == 200
        case "that of its grant":
            assert await provider.count(REFRESH_TOKENS)
            form = {"token": tokens["refresh_token"]}
            assert (await provider.ask(app, "/idp/token/revocation", form)).status == 200
        case "the account's disabling":
            await provider.change_account(disabled=True)
        case "all tokens' end":
            await provider.change_account(valid_after_s=now_s)


async def upload(provider: Provider, app: App, tokens: dict[str, str], how: str) -> Answer:
    """PUT a new resource; between two pieces an hour passes, and something happens."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"first "
        provider.clock.advance(3600)
        await end(provider, app, tokens, how)
        yield b"second"

    headers = {
        "Authorization": f"DPoP {tokens['access_token']}",
        "DPoP": provider.proof(app.key, method="PUT", url=BASE + NEW),
        "Content-Type": "text/plain",
        "Transfer-Encoding": "chunked",
    }
    return await provider.public.request("PUT", NEW, headers=headers, body=pieces())


@pytest.mark.parametrize("how", ENDS)
async def test_a_token_that_is_ended_meanwhile_stores_nothing(
    provider: Provider, app: App, how: str
) -> None:
    answer = await upload(provider, app, await provider.tokens(app), how)
    assert answer.status == 401
    assert 'error="invalid_token"' in answer.header_lines("www-authenticate")[0]
    await provider.change_account(disabled=False, valid_after_s=0)
    later = await provider.tokens(app)
    assert await provider.get(later["access_token"], app.key, NEW) == 404


async def test_a_token_that_expires_meanwhile_stores_what_it_came_with(
    provider: Provider, app: App
) -> None:
    answer = await upload(provider, app, await provider.tokens(app), "nothing")
    assert answer.status == 201, answer.text
    later = await provider.tokens(app)
    assert await provider.get(later["access_token"], app.key, NEW) == 200
