"""The trash opens no more to an application than its limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.provider_flows import App, Provider

enforcement = pytest.importorskip("podstead.features.access_limits.enforcement")
limits = pytest.importorskip("podstead.features.access_limits.limits")
pytestmark = pytest.mark.feature("access_limits")

WEB_ID = f"{BASE}/alice/#me"


@dataclass
class Access:
    """Requests with the token of one application."""

    provider: Provider
    app: App
    token: str

    async def send(self, method: str, path: str, body: bytes = b"", **fields: str) -> Answer:
        url = BASE + path.partition("?")[0]
        headers = {
            "Authorization": f"DPoP {self.token}",
            "DPoP": self.provider.proof(self.app.key, method=method, url=url),
            **({"Content-Type": "text/plain"} if body else {}),
            **fields,
        }
        return await self.provider.public.request(method, path, headers=headers, body=body)

    async def items(self) -> dict[str, str]:
        """The addresses of what is in the trash, by the paths."""
        answer = await self.send("GET", "/.history/trash/alice/")
        assert answer.status == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["items"]
        return {
            each["resource"].removeprefix(BASE): each["id"].removeprefix(BASE) for each in found
        }


async def access(provider: Provider, app: App) -> Access:
    return Access(provider, app, (await provider.tokens(app))["access_token"])


async def test_a_limited_application_sees_and_restores_what_its_limit_says(
    provider: Provider, public_app: App, app: App
) -> None:
    full, narrow = await access(provider, public_app), await access(provider, app)
    for path in ("/alice/a/doc", "/alice/b/doc"):
        assert (await full.send("PUT", path, b"content")).status == 201
        assert (await full.send("DELETE", path)).status in {200, 204, 205}
    every = await full.items()
    assert set(every) == {"/alice/a/doc", "/alice/b/doc"}
    key = enforcement.client_key(WEB_ID, narrow.app.client_id)

    async def limit(*actions: str, rules: bool = False) -> None:
        place = limits.AllowedPlace("/alice/a/", actions, rules=rules)
        stored = enforcement.StoredLimit(
            WEB_ID, narrow.app.client_id, limits.Limit("/alice/", (place,))
        )
        owner = provider.account.account_id
        await provider.commit(enforcement.LIMITS.put(key, stored, owner=owner))

    await limit("read")
    for path, status in (("/alice/a/doc", 404), ("/alice/b/doc", 403)):
        assert (await narrow.send("GET", f"/.history/timemap{path}")).status == status
    assert set(await narrow.items()) == {"/alice/a/doc"}
    assert (await narrow.send("POST", every["/alice/b/doc"])).status == 404
    assert (await narrow.send("DELETE", every["/alice/b/doc"])).status == 404
    assert (await narrow.send("POST", every["/alice/a/doc"])).status == 403
    assert (await narrow.send("DELETE", "/.history/trash/alice/")).status == 204
    assert await full.items() == every
    await limit(*limits.ACTIONS)
    assert (await narrow.send("POST", every["/alice/a/doc"])).status == 201
    assert (await full.send("GET", "/alice/a/doc")).text == "content"
    # Who may only edit removes nothing for good.
    assert (await narrow.send("DELETE", "/alice/a/doc")).status in {200, 204, 205}
    item = (await narrow.items())["/alice/a/doc"]
    assert (await narrow.send("DELETE", item)).status == 403
    assert (await narrow.send("DELETE", "/.history/trash/alice/")).status == 204
    assert set(await full.items()) == set(every)
    await limit(*limits.ACTIONS, rules=True)
    assert (await narrow.send("DELETE", "/.history/trash/alice/")).status == 204
    assert set(await full.items()) == {"/alice/b/doc"}
    # The versions of what is there now are open as it is itself.
    for folder in ("a", "b"):
        assert (await full.send("PUT", f"/alice/{folder}/doc", b"again")).status == 201
    for path, status in (("/alice/a/doc", 200), ("/alice/b/doc", 403)):
        for place in ("timemap", "version"):
            answer = await full.send("GET", f"/.history/timemap{path}")
            version = answer.text.partition("?version=")[2][:16]
            target = f"/.history/{place}{path}?version={version}"
            assert (await narrow.send("GET", target)).status == status
