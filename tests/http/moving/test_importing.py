"""Trees of resources are written into pods whole, closed until the end, and once."""

from __future__ import annotations

import msgspec
import pytest

from podstead.app.operator.importing import OpenedPods
from podstead.core.errors import Conflict, QuotaExceeded
from podstead.resources.importing import importer as import_writer
from podstead.resources.renaming import NameMapping
from tests.support.application import BASE, Server
from tests.support.importing import Resources, imported

OPEN = """\
@prefix acl: <http://www.w3.org/ns/auth/acl#>. @prefix foaf: <http://xmlns.com/foaf/0.1/>.
<#owner> a acl:Authorization; acl:agent </alice/#me>; acl:accessTo <./>; acl:default <./>;
  acl:mode acl:Read, acl:Write, acl:Control.
<#public> a acl:Authorization; acl:agentClass foaf:Agent; acl:accessTo <./>; acl:default <./>;
  acl:mode acl:Read.
"""
PAST_MS = 1_500_000_000_000


async def test_a_new_pod_has_what_was_imported(pods: OpenedPods, server: Server) -> None:
    source = Resources(
        [
            imported("/carol/notes/a.ttl", "<> a <#Note>.", modified_ms=PAST_MS),
            imported("/carol/.acl", OPEN),
            imported("/carol/notes/", "<> <#title> 'Notes'."),
            imported("/carol/notes/photo.jpg", b"\xff\xd8 not really", "image/jpeg"),
            imported("/carol/notes/photo.jpg.meta", "<photo.jpg> <#of> <a.ttl>."),
            imported("/carol/", "<#me> a <#Person>."),
        ]
    )
    report = await pods.importer.run(pods.target("carol", source_id="1"), source.resources())
    assert (report.documents, report.containers, report.descriptions, report.rules) == (2, 2, 1, 1)
    assert not report.not_taken
    public = server.public
    note = await public.get("/carol/notes/a.ttl")
    assert note.text == "<> a <#Note>."
    assert note.header("last-modified") == "Fri, 14 Jul 2017 02:40:00 GMT"
    photo = await public.get("/carol/notes/photo.jpg")
    assert (photo.header("content-type"), photo.body) == ("image/jpeg", b"\xff\xd8 not really")
    assert "#of" in (await public.get("/carol/notes/photo.jpg.meta")).text
    assert "Notes" in (await public.get("/carol/notes/")).text
    assert (await public.get("/carol/.acl")).status == 401
    assert (await server.alice.get("/carol/.acl")).status == 200


async def test_nobody_sees_a_pod_before_everything_is_there(
    pods: OpenedPods, server: Server
) -> None:
    resources = [
        imported("/carol/.acl", OPEN),
        imported("/carol/private/.acl", "# nobody"),
        *(imported(f"/carol/private/{index}", str(index), "text/plain") for index in range(500)),
    ]
    target = pods.target("carol", source_id="1")
    with pytest.raises(InterruptedError):
        await pods.importer.run(target, Resources(resources, breaks_after=450).resources())
    for path in ("/carol/", "/carol/private/1", "/carol/.acl"):
        assert (await server.public.get(path)).status == 401
        assert (await server.alice.get(path)).status == 403
    report = await pods.importer.run(target, Resources(resources).resources())
    assert report.documents + report.already_there == 500
    assert report.already_there >= import_writer.RESOURCES_AT_ONCE
    assert (await server.public.get("/carol/")).status == 200
    assert (await server.alice.get("/carol/private/1")).status == 403


async def test_a_pod_that_exists_is_not_imported_over(pods: OpenedPods, server: Server) -> None:
    source = Resources([imported("/alice/a", "a", "text/plain")])
    with pytest.raises(Conflict, match="already"):
        await pods.importer.run(pods.target("alice", source_id="1"), source.resources())
    broken = Resources([imported("/carol/a", "a", "text/plain")], breaks_after=0)
    with pytest.raises(InterruptedError):
        await pods.importer.run(pods.target("carol", source_id="1"), broken.resources())
    with pytest.raises(Conflict, match="unfinished"):
        await pods.importer.run(pods.target("carol", source_id="2"), source.resources())


async def test_rules_that_cannot_be_read_close_what_they_protect(
    pods: OpenedPods, server: Server
) -> None:
    source = Resources(
        [
            imported("/carol/.acl", OPEN),
            imported("/carol/secret", "s", "text/plain"),
            imported("/carol/secret.acl", "this is not Turtle"),
            imported("/carol/note.ttl", "nor is this"),
            imported("/carol/note", "n", "text/plain"),
            imported("/carol/note/below", "n", "text/plain"),
            imported("/bob/note", "n", "text/plain"),
        ]
    )
    report = await pods.importer.run(pods.target("carol", source_id="1"), source.resources())
    assert [each.path for each in report.closed] == ["/carol/secret.acl"]
    refused = [each.path for each in report.not_taken]
    assert refused == ["/carol/note.ttl", "/bob/note", "/carol/note/below"]
    assert (await server.public.get("/carol/secret")).status == 401
    assert (await server.alice.get("/carol/secret")).status == 403
    assert (await server.public.get("/carol/note")).status == 200


async def test_names_of_the_old_pod_are_rewritten_and_others_kept(
    pods: OpenedPods, server: Server
) -> None:
    old = "https://old.example/alicia/"
    names = NameMapping(beginnings=((old, f"{BASE}/carol/"),))
    content = f"<#it> <{old}vocab#of> <{old}b>, <../bob/#me>, <b>, 'see {old}b'."
    rules = OPEN.replace("</alice/#me>", f"<{old}#me>, </bob/#me>")
    source = Resources(
        [
            imported("/carol/a.ttl", content, from_url=f"{old}a.ttl"),
            imported("/carol/b.ttl", "<#it> <#of> <b>.", from_url=f"{old}b.ttl"),
            imported("/carol/.acl", rules, from_url=f"{old}.acl"),
        ]
    )
    target = msgspec.structs.replace(pods.target("carol", source_id="1"), names=names)
    report = await pods.importer.run(target, source.resources())
    assert report.renamed == 2
    document = await server.public.get("/carol/a.ttl", accept="application/n-triples")
    it = f"<{BASE}/carol/a.ttl#it> <{BASE}/carol/vocab#of>"
    assert set(document.text.splitlines()) == {
        f"{it} <{BASE}/carol/b> .",
        f"{it} <https://old.example/bob/#me> .",
        f'{it} "see {old}b" .',
    }
    # The person of that name on this server is somebody else.
    assert (await server.bob.get("/carol/.acl")).status == 403


async def test_a_dry_run_changes_nothing_and_counts_the_same(
    pods: OpenedPods, server: Server
) -> None:
    source = Resources(
        [
            imported("/carol/a/b/c.ttl", "<> a <#Note>."),
            imported("/carol/a/", "<> a <#Folder>."),
            imported("/carol/a/b", "a document where a container is", "text/plain"),
            imported("/carol/.acl", OPEN),
        ]
    )
    target = pods.target("carol", source_id="1")
    dry = await pods.importer.run(msgspec.structs.replace(target, dry_run=True), source.resources())
    assert (await server.public.get("/carol/")).status == 401
    assert await pods.records.store.read_pod("carol") is None
    wet = await pods.importer.run(target, source.resources())
    assert dry == wet
    used = await pods.records.store.used_bytes("carol")
    assert wet.charged_bytes == used


async def test_the_quota_is_respected(pods: OpenedPods, server: Server) -> None:
    target = pods.target("carol", source_id="1")
    assert target.new_pod is not None
    small = msgspec.structs.replace(target.new_pod, quota_bytes=20_000)
    target = msgspec.structs.replace(target, new_pod=small)
    source = Resources([imported("/carol/a", b"x" * 20_000, "text/plain")])
    with pytest.raises(QuotaExceeded):
        await pods.importer.run(msgspec.structs.replace(target, dry_run=True), source.resources())
    with pytest.raises(QuotaExceeded):
        await pods.importer.run(target, source.resources())


async def test_into_an_existing_pod_nothing_is_replaced(pods: OpenedPods, server: Server) -> None:
    await server.alice.put("/alice/public/a", "old", "text/plain")
    target = msgspec.structs.replace(pods.target("alice", source_id="1"), new_pod=None)
    source = Resources(
        [
            imported("/alice/public/a", "new", "text/plain"),
            imported("/alice/public/b/c", "new", "text/plain"),
            imported("/alice/public/b/.acl", OPEN),
        ]
    )
    report = await pods.importer.run(target, source.resources())
    assert (report.documents, report.already_there) == (1, 1)
    assert [each.path for each in report.not_taken] == ["/alice/public/b/.acl"]
    assert (await server.public.get("/alice/public/a")).text == "old"
    assert (await server.public.get("/alice/public/b/c")).text == "new"
