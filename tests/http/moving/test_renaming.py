"""A pod gets another name with everything in it, at once or not at all."""

from __future__ import annotations

import pytest

from podstead.app.operator.administration import rename_pod
from podstead.app.operator.importing import OpenedPods
from podstead.config import Settings
from podstead.core.errors import Conflict
from podstead.core.identifiers import ResourcePath
from podstead.resources.pod_renaming import PodRenamer, Renaming
from podstead.storage.quota import fixed_charge
from tests.support.application import BASE, Server
from tests.support.asgi import Answer
from tests.support.importing import Resources, imported

PHOTO = bytes(range(256)) * 2000


async def renamed(pods: OpenedPods, name: str = "alice", new_name: str = "alicia") -> Renaming:
    pod = await pods.records.store.read_pod(name)
    assert pod is not None
    return await pods.renamer.rename(pod, new_name, joined=lambda _: ((), ()))


async def fill(server: Server) -> None:
    alice = server.alice
    await alice.put("/alice/public/a.ttl", f"<> <#of> <{BASE}/alice/public/b>, <b>.", "text/turtle")
    await alice.put("/alice/public/photo", PHOTO, "image/png")
    await alice.put("/alice/public/photo.meta", "<photo> <#shows> <a.ttl>.", "text/turtle")
    await alice.put("/alice/shared/note", "for Bob", "text/plain")
    await server.put_acl("/alice/shared/", (f"acl:agent <{server.bob_web_id}>", "+Read"))


async def test_everything_is_under_the_new_name_with_the_same_rights(
    pods: OpenedPods, server: Server, settings: Settings
) -> None:
    await fill(server)
    before = await server.alice.get("/alice/public/photo")
    report = await rename_pod(settings, "alice", "alicia", on_step=lambda *_: None)
    assert (report.url, report.web_id) == (f"{BASE}/alicia/", f"{BASE}/alicia/#me")
    after = await server.public.get("/alicia/public/photo")
    assert (after.body, after.header("content-type")) == (PHOTO, "image/png")
    assert after.header("last-modified") == before.header("last-modified")
    document = await server.public.get("/alicia/public/a.ttl", accept="application/n-triples")
    assert document.text.count(f"<{BASE}/alicia/public/b>") == 1
    assert "/alice/" not in document.text
    assert (await server.bob.get("/alicia/shared/note")).text == "for Bob"
    assert (await server.public.get("/alicia/shared/note")).status == 401
    # The owner's old token is not valid any more, and the pod belongs to the new WebID.
    assert (await server.alice.get("/alicia/shared/note")).status == 401
    pod = await pods.records.store.read_pod("alicia")
    assert pod is not None
    assert pod.owner == f"{BASE}/alicia/#me"
    assert await pods.records.store.read_pod("alice") is None
    found = (await pods.records.store.read_tree(pod.root, limit=1000)).values()
    charged = sum(each.size_bytes + fixed_charge(each.path) for each in found if each is not None)
    assert await pods.records.store.used_bytes("alicia") == charged


async def tree(pods: OpenedPods, root: str) -> list[str]:
    return list(await pods.records.store.read_tree(ResourcePath(root), limit=1000))


async def test_old_urls_lead_to_the_new_ones(
    pods: OpenedPods, server: Server, settings: Settings
) -> None:
    await fill(server)
    await renamed(pods)
    old = await server.public.get("/alice/public/a.ttl?x=1")
    assert (old.status, old.header("location")) == (301, f"{BASE}/alicia/public/a.ttl?x=1")
    written = await server.bob.put("/alice/public/new", "x", "text/plain")
    assert (written.status, written.header("location")) == (308, f"{BASE}/alicia/public/new")
    profile = await server.public.get("/alice/")
    assert (profile.status, profile.header("location")) == (301, f"{BASE}/alicia/")
    # Nobody else gets the name, and with it what others have shared with its WebID.
    taken = await server.public.post("/.pods", '{"name": "alice"}', "application/json")
    assert taken.status == 409
    # It may be taken back.
    await renamed(pods, "alicia", "alice")
    assert (await server.public.get("/alice/public/a.ttl")).status == 200
    back = await server.public.get("/alicia/public/a.ttl")
    assert (back.status, back.header("location")) == (301, f"{BASE}/alice/public/a.ttl")


async def test_names_that_are_taken_are_refused(pods: OpenedPods, server: Server) -> None:
    for name in ("bob", "BOB", "Alice"):
        with pytest.raises(Conflict):
            await renamed(pods, "alice", name)
    await renamed(pods, "bob", "robert")
    with pytest.raises(Conflict, match="belonged to another"):
        await renamed(pods, "alice", "bob")
    assert (await server.public.get("/alice/")).status == 200


async def test_a_pod_whose_import_is_unfinished_keeps_its_name(pods: OpenedPods) -> None:
    broken = Resources([imported("/carol/a", "a", "text/plain")], breaks_after=0)
    with pytest.raises(InterruptedError):
        await pods.importer.run(pods.target("carol", source_id="1"), broken.resources())
    with pytest.raises(Conflict, match="import of the pod is unfinished"):
        await renamed(pods, "carol", "caroline")


@pytest.mark.feature("git")
async def test_repositories_follow_also_those_that_are_made_meanwhile(
    pods: OpenedPods, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = pytest.importorskip("podstead.features.git.entries")
    names = [str(number) * 32 for number in range(3)]
    made: list[str] = []
    read = PodRenamer._hooked

    async def and_made(*arguments: object) -> object:
        if len(made) < len(names):
            name = names[len(made)]
            made.append(name)
            path = ResourcePath(f"/alice/made-{len(made)}/")
            await server.alice.put(path, "", "text/turtle")
            await pods.records.commit([git.put_repository(path, name)])
        return await read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PodRenamer, "_hooked", and_made)
    await renamed(pods)
    found = [each async for each in git.repository_entries(pods.records.store, now_ms=0)]
    assert {git.container_of(each): git.repository_name_in(each) for each in found} == {
        f"/alicia/made-{number}/": name for number, name in enumerate(names, 1)
    }
    assert {each.owner for each in found} == {"/alicia/"}


async def test_writes_that_happen_meanwhile_are_not_lost(
    pods: OpenedPods, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(server)
    written: list[Answer] = []
    read = PodRenamer._hooked

    async def and_written(*arguments: object) -> object:
        if len(written) < 3:
            path = f"/alice/public/during-{len(written)}"
            written.append(await server.alice.put(path, "written", "text/plain"))
            await server.put_acl(path, ("acl:agentClass foaf:Agent", "Read"))
        return await read(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(PodRenamer, "_hooked", and_written)
    await renamed(pods)
    assert [each.status for each in written] == [201, 201, 201]
    for index in range(3):
        found = await server.public.get(f"/alicia/public/during-{index}")
        assert (found.status, found.text) == (200, "written")
    assert not await tree(pods, "/alice/")
