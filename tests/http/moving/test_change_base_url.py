"""Everything gets another base URL, and the old one leads there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from podstead.app.adapters.keys import ensure_token_key
from podstead.app.adapters.root import (
    begin_move,
    former_base_urls,
    remembered_base_url,
    remembered_issuer,
    unfinished_move,
)
from podstead.app.operator.administration import open_root
from podstead.app.operator.change_base_url import BaseMoveReport, move_data_root
from podstead.config import Settings
from podstead.core.errors import Conflict, RootInUse, RootUnusable
from podstead.resources.pod_renaming import BaseMove
from podstead.storage.keys import KeyFiles
from podstead.storage.root import lock_root, prepare_root
from podstead.storage.sqlite import SqliteFacts
from tests.support.application import BASE, Server, acl_turtle, running, with_two_pods
from tests.support.asgi import Client

NEW = "https://pods.example"


@pytest.fixture
async def filled(settings: Settings) -> Settings:
    """A data root with two pods, whose server has stopped."""
    layout = prepare_root(settings.root)
    ensure_token_key(KeyFiles(layout.keys))
    SqliteFacts(layout.database).write_fact("base-url", BASE)
    SqliteFacts(layout.database).write_fact("issuer", BASE)
    async with running(settings) as application:
        await fill(await with_two_pods(application))
    return settings


async def fill(server: Server) -> None:
    alice = server.alice
    await alice.put("/alice/public/a.ttl", f"<> <#of> <{BASE}/alice/b>, <b>.", "text/turtle")
    await alice.put("/alice/note", f"see {BASE}/alice/b", "text/plain")
    await server.put_acl("/alice/note", ("acl:agent </bob/#me>", "Read"))
    issuer = f"<#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <{BASE}> ."
    patch = f"INSERT DATA {{ {issuer} }}"
    headers = {"content-type": "application/sparql-update"}
    patched = await alice.request("PATCH", "/alice/", headers=headers, body=patch.encode())
    assert patched.status in (200, 204), patched.text


async def moved(
    settings: Settings, *, every_document: bool = False, dry_run: bool = False
) -> BaseMoveReport:
    return await move_data_root(
        settings, NEW, every_document=every_document, dry_run=dry_run, on_step=lambda *_: None
    )


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[Client]:
    """The server at the new URL, as the public sees it."""
    former = former_base_urls(settings)
    settings = replace(settings, base_url=NEW, former_base_urls=former)
    async with running(settings) as application:
        yield Client(application, host="pods.example")


async def owner(settings: Settings, public: Client, name: str) -> Client:
    async with open_root(settings) as root:
        return public.with_token((await root.tokens.create(name)).token)


async def test_people_have_the_same_rights_at_the_new_url(filled: Settings) -> None:
    report = await moved(filled)
    assert (report.old, report.new, report.issuer, report.pods) == (BASE, NEW, NEW, 2)
    assert (report.revoked_tokens, report.moved.unreadable, report.moved.documents) == (2, [], 0)
    async with served(filled) as public:
        alice, bob = [await owner(filled, public, name) for name in ("alice", "bob")]
        assert (await alice.get("/alice/private/")).status == 200
        assert (await bob.get("/alice/private/")).status == 403
        assert (await bob.get("/alice/note")).status == 200
        assert (await public.get("/alice/note")).status == 401
        profile = await public.get("/alice/", accept="application/n-triples")
        assert f"<{NEW}/alice/#me> <http://www.w3.org/ns/solid/terms#oidcIssuer> <{NEW}>" in (
            profile.text
        )
        assert BASE not in profile.text
        shared = await alice.get("/alice/note.acl", accept="application/n-triples")
        assert f"<{NEW}/bob/#me>" in shared.text
        # Documents only on request.
        document = await public.get("/alice/public/a.ttl", accept="application/n-triples")
        assert f"<{BASE}/alice/b>" in document.text
        assert f"<{NEW}/alice/public/b>" in document.text
    assert (remembered_base_url(filled), remembered_issuer(filled)) == (NEW, NEW)
    assert former_base_urls(filled) == (BASE,)


async def test_documents_are_rewritten_on_request(filled: Settings) -> None:
    report = await moved(filled, every_document=True)
    assert report.moved.documents == 1
    async with served(filled) as public:
        document = await public.get("/alice/public/a.ttl", accept="application/n-triples")
        assert BASE not in document.text
        alice = await owner(filled, public, "alice")
        assert (await alice.get("/alice/note")).text == f"see {BASE}/alice/b"


async def test_the_former_host_leads_to_the_new_one(filled: Settings) -> None:
    await moved(filled)
    async with served(filled) as public:
        former = Client(public.application, host="localhost:3000")
        answer = await former.get("/alice/public/a.ttl?x=1")
        assert (answer.status, answer.header("location")) == (
            301,
            f"{NEW}/alice/public/a.ttl?x=1",
        )
        head = await former.request("HEAD", "/alice/")
        assert (head.status, head.header("location")) == (301, f"{NEW}/alice/")
        assert (await former.put("/alice/x", "x", "text/plain")).status == 421
        other = Client(public.application, host="other.example")
        assert (await other.get("/alice/")).status == 421


async def test_a_dry_run_changes_nothing(filled: Settings) -> None:
    dry = await moved(filled, every_document=True, dry_run=True)
    assert (remembered_base_url(filled), unfinished_move(filled)) == (BASE, None)
    assert await moved(filled, every_document=True) == dry


async def test_an_interrupted_move_is_finished_by_the_next(
    filled: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite = BaseMove._rewrite_page

    async def interrupted(*arguments: object, **options: object) -> None:
        await rewrite(*arguments, **options)  # type: ignore[arg-type]
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(BaseMove, "_rewrite_page", interrupted)
        with pytest.raises(InterruptedError):
            await moved(filled)
    assert unfinished_move(filled) == NEW
    with pytest.raises(Conflict, match="interrupted"):
        await move_data_root(
            filled,
            "https://other.example",
            every_document=False,
            dry_run=False,
            on_step=lambda *_: None,
        )
    report = await moved(filled)
    assert report.pods == 2
    assert unfinished_move(filled) is None
    async with served(filled) as public:
        alice = await owner(filled, public, "alice")
        put = await alice.put("/alice/note.acl", rules(), "text/turtle")
        assert put.status in (204, 205)
        assert (await alice.get("/alice/private/")).status == 200


def rules() -> str:
    return acl_turtle("/alice/note").replace(BASE, NEW)


async def test_a_root_that_is_served_is_not_moved(filled: Settings) -> None:
    with lock_root(filled.root), pytest.raises(RootInUse):
        await moved(filled)
    assert unfinished_move(filled) is None
    begin_move(filled, NEW)


async def test_a_root_that_does_not_exist_is_named(settings: Settings) -> None:
    with pytest.raises(RootUnusable, match="There is no data in"):
        await moved(settings)
