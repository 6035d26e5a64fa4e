"""An application learns no more by a query than its limit lets it read."""

from __future__ import annotations

import pytest

from tests.support.application import BASE
from tests.support.asgi import Answer
from tests.support.provider_flows import App, Provider

enforcement = pytest.importorskip("podstead.features.access_limits.enforcement")
limits = pytest.importorskip("podstead.features.access_limits.limits")
pytestmark = pytest.mark.feature("access_limits")

WEB_ID = f"{BASE}/alice/#me"
VALUES = "SELECT ?o { ?s <http://example.org/p> ?o } ORDER BY ?o"


async def send(
    provider: Provider, app: App, token: str, method: str, path: str, body: str, content_type: str
) -> Answer:
    headers = {
        "Authorization": f"DPoP {token}",
        "DPoP": provider.proof(app.key, method=method, url=BASE + path),
        "Content-Type": content_type,
        "Accept": "text/csv",
    }
    return await provider.public.request(method, path, headers=headers, body=body.encode())


async def test_the_limit_of_an_application_holds(
    provider: Provider, public_app: App, app: App
) -> None:
    full = (await provider.tokens(public_app))["access_token"]
    narrow = (await provider.tokens(app))["access_token"]
    apps = limits.APPS_FOLDER
    for number, path in enumerate(("a/1", "a/b/2", f"{apps}other/3", "c/4")):
        content = f"<> <http://example.org/p> {number}."
        answer = await send(
            provider, public_app, full, "PUT", f"/alice/{path}", content, "text/turtle"
        )
        assert answer.status == 201, answer.text

    async def limit(*places: str) -> None:
        allowed = tuple(limits.AllowedPlace(each, ("read",)) for each in places)
        stored = enforcement.StoredLimit(WEB_ID, app.client_id, limits.Limit("/alice/", allowed))
        key = enforcement.client_key(WEB_ID, app.client_id)
        owner = provider.account.account_id
        await provider.commit(enforcement.LIMITS.put(key, stored, owner=owner))

    async def values(token: str, by: App, path: str = "/alice/") -> list[str] | int:
        type_ = "application/sparql-query"
        answer = await send(provider, by, token, "QUERY", path, VALUES, type_)
        return answer.text.split()[1:] if answer.status == 200 else answer.status

    await limit("/alice/")  # without the folders of other applications
    assert await values(narrow, app) == ["0", "1", "3"]
    await limit("/alice/a/")
    assert await values(narrow, app) == ["0", "1"]  # anyone may read the profile there
    assert await values(narrow, app, "/alice/c/") == 403
    assert await values(narrow, app, "/alice/a/") == ["0", "1"]
    await limit("/alice/a/b/")
    assert await values(narrow, app, "/alice/a/b/") == ["1"]
    assert await values(full, public_app) == ["0", "1", "2", "3"]
