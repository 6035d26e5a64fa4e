"""Owners of imported pods keep their WebIDs, and only they change who can act as them."""

from __future__ import annotations

import pytest

from podstead.app.operator.importing import OpenedPods
from tests.support.application import BASE, Server
from tests.support.importing import Resources, imported

CARD = "/carol/profile/card"
OIDC_ISSUER = "http://www.w3.org/ns/solid/terms#oidcIssuer"
PROFILE = f"<#me> <{OIDC_ISSUER}> <{BASE}>."
RULES = f"""\
@prefix acl: <http://www.w3.org/ns/auth/acl#>.
<#owner> a acl:Authorization; acl:agent <{BASE}{CARD}#me>, <{BASE}/alice/#me>;
  acl:accessTo <./>; acl:default <./>; acl:mode acl:Read, acl:Write, acl:Control.
"""


@pytest.fixture(params=[f"{BASE}{CARD}#me", f"{BASE}/carol/#me"])
async def carol(pods: OpenedPods, server: Server, request: pytest.FixtureRequest) -> str:
    """The owner of a pod in which alice has Control, too."""
    web_id: str = request.param
    source = Resources(
        [
            imported("/carol/.acl", RULES),
            imported("/carol/", PROFILE),
            imported(CARD, PROFILE),
            imported("/carol/notes", PROFILE),
        ]
    )
    await pods.importer.run(pods.target("carol", source_id="1", owner=web_id), source.resources())
    assert server is not None
    return web_id


async def test_control_is_not_enough_to_become_the_owner(carol: str, server: Server) -> None:
    path = carol.partition("#")[0].removeprefix(BASE)
    stolen = f"<#me> <{OIDC_ISSUER}> <https://mallory.example>."
    refused = await server.alice.put(path, stolen, "text/turtle")
    assert refused.status == 403
    assert "Only the owner" in refused.text
    patch = f"INSERT DATA {{ <{carol}> <{OIDC_ISSUER}> <https://mallory.example> }}"
    headers = {"content-type": "application/sparql-update"}
    patched = await server.alice.request("PATCH", path, headers=headers, body=patch.encode())
    assert patched.status == 403
    assert (await server.alice.delete(path)).status in {403, 405}
    assert "mallory" not in (await server.alice.get(path)).text


async def test_other_documents_stay_a_matter_of_control(carol: str, server: Server) -> None:
    assert carol
    changed = f"<#me> <{OIDC_ISSUER}> <https://other.example>."
    assert (await server.alice.put("/carol/notes", changed, "text/turtle")).status == 204
