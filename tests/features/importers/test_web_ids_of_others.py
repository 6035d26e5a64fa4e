"""Nobody who comes from another server becomes a person of this one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec
import pytest

from podstead.app.operator.importing import OpenedPods, opened_pods
from podstead.config import Settings
from podstead.features.importers.folders import OtherServer
from podstead.features.importers.pods import ServerImport, ServerImportReport
from podstead.features.importers.values import (
    FoundAccount,
    FoundPod,
    FoundResource,
    FoundSecret,
    LeftOut,
)
from podstead.idp.records import ACCOUNTS, CREDENTIALS, Account
from podstead.storage.layout import RootLayout
from podstead.storage.sqlite import SqliteFacts
from tests.support.application import BASE, Server

THERE = "https://there.example/"
FORMER = "https://former.example"
DUMMY_HASH = "$2b$10$oG45Y7X0DTxs9N8t29GyMe9Ibi5jQ5IyYWVoVnTY5Ks1vmRcWT8zO"


READABLE = """\
@prefix acl: <http://www.w3.org/ns/auth/acl#>. @prefix foaf: <http://xmlns.com/foaf/0.1/>.
<#all> a acl:Authorization; acl:agentClass foaf:Agent; acl:default <./>; acl:accessTo <./>;
  acl:mode acl:Read.
<#owner> a acl:Authorization; acl:agent <https://owner.example/#me>; acl:accessTo <./>;
  acl:mode acl:Control.
"""


@dataclass
class TheirData(OtherServer):
    """Each pod has one document, which names the owner of another."""

    pods: Sequence[FoundPod]
    accounts: Sequence[FoundAccount]
    base_url: str = THERE
    left_out: list[LeftOut] = field(default_factory=list)

    def resources(self, pod: FoundPod) -> Iterator[FoundResource]:
        about = f"<> <http://purl.org/dc/terms/creator> <{THERE}alice/#me>."
        for path, content in ((".acl", READABLE), ("notes", about)):
            yield FoundResource(path, pod.url + path, "text/turtle", content=content.encode())

    async def content(self, resource: FoundResource) -> AsyncIterator[bytes]:
        yield resource.content or b""


def pod(name: str, owner: str) -> FoundPod:
    return FoundPod(name, f"{THERE}{name}/", owner, (name,))


def account(web_ids: Sequence[str], *pods: str) -> FoundAccount:
    secrets = tuple(
        FoundSecret(f"id-{number}", "secret", "a", web_id) for number, web_id in enumerate(web_ids)
    )
    urls = tuple(f"{THERE}{name}/" for name in pods)
    return FoundAccount(urls, tuple(web_ids), None, DUMMY_HASH, secrets)


async def imported(
    opened: OpenedPods, data: TheirData
) -> tuple[ServerImportReport, dict[str, Account]]:
    report = await ServerImport(opened, data, "css", {}).run()
    page = await ACCOUNTS.page(opened.records.store, now_ms=opened.records.now_ms(), limit=10)
    return report, {each.value.pod: each.value for each in page}


@pytest.fixture
async def opened(server: Server, settings: Settings) -> AsyncIterator[OpenedPods]:
    facts = SqliteFacts(RootLayout(settings.root).database)
    facts.write_fact("base-url", BASE)
    facts.write_fact("former-base-urls", FORMER)
    async with opened_pods(settings) as pods:
        yield pods


@pytest.mark.parametrize(
    "stolen",
    [
        f"{BASE}/alice/#me",
        f"{BASE.replace('http', 'HTTPS')}/%61lice/#me",
        f"{BASE}/nobody-yet/#me",
        "http://127.0.0.1:3000/alice/#me",
        f"{FORMER}/alice/#me",
        f"{FORMER}:443/alice/#me",
    ],
)
@pytest.mark.parametrize("is_owner", [True, False], ids=["owner", "account"])
async def test_nobody_gets_the_web_id_of_a_person_here(
    opened: OpenedPods, stolen: str, is_owner: bool
) -> None:
    owner = stolen if is_owner else f"{THERE}mallory/#me"
    data = TheirData([pod("mallory", owner)], [account([stolen], "mallory")])
    report, accounts = await imported(opened, data)
    own = f"{BASE}/mallory/#me"
    assert accounts["mallory"].web_id == report.pods[0].owner == own
    kept = await opened.records.store.read_pod("mallory")
    assert kept is not None
    assert kept.owner == own
    assert await opened.records.read(CREDENTIALS, "id-0") is None
    refused = [each.path for each in report.left_out if stolen in each.reason]
    assert refused == (["mallory"] if is_owner else []) + ["account of mallory"]
    again, _ = await imported(opened, data)
    assert [each.already_there for each in again.pods] == [True]


async def test_a_pod_of_the_same_name_is_a_strangers(opened: OpenedPods, server: Server) -> None:
    """The account has a pod `alice` there. Here, `alice` is somebody else's."""
    alice = f"{THERE}alice/#me"
    data = TheirData(
        [pod("alice", alice), pod("mallory", alice)], [account([alice], "alice", "mallory")]
    )
    report, accounts = await imported(opened, data)
    assert [each.path for each in report.left_out] == ["alice"]
    assert [each.name for each in report.pods] == ["mallory"]
    assert accounts["mallory"].web_id == alice, "as it was, and not that of the other alice"
    notes = await server.public.get("/mallory/notes")
    assert f"<{alice}>" in notes.text, "nor does the other alice get what this one had access to"


async def test_an_account_keeps_its_web_id_in_all_its_pods(opened: OpenedPods) -> None:
    web_id = f"{THERE}zoe/#me"
    both = msgspec.structs.replace(account([web_id], "books", "zoe"), secrets=())
    data = TheirData([pod("books", web_id), pod("zoe", web_id)], [both])
    report, accounts = await imported(opened, data)
    here = f"{BASE}/zoe/#me"
    assert {name: each.web_id for name, each in accounts.items()} == {"books": here, "zoe": here}
    assert [each.owner for each in report.pods] == [here, here]
    assert report.left_out == []
