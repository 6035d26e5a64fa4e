"""Whatever is in a pod: exported, and imported at another base URL under another name, its
documents say the same about the new URLs, and the same people have the same access.

The judges are rdflib, a plain replacement of URLs, and the model of WAC that knows nothing of ours.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import Graph, Literal, URIRef
from rdflib.compare import isomorphic
from rdflib.term import Node

from podstead.app.operator.importing import OpenedPods, opened_pods
from podstead.app.operator.pod_archives import export_pod, import_pod
from podstead.config import Settings
from podstead.resources.importing.pod_archive import opened_archive
from podstead.storage.open_body import whole_body
from podstead.storage.records import Metadata, ResourceKind
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteFacts
from tests.properties.wac_oracle import Oracle
from tests.support.importing import Resources, imported

OLD: Final = "http://localhost:3000"
NEW: Final = "https://pods.example"
POD: Final = "/alice/"
MOVED: Final = "/alicia/"

FOLDERS: Final = ["", "a/", "a/b/", "c/"]
AGENTS: Final = [
    f"{OLD}/alice/#me",
    f"{OLD}/alice/a/card#x",
    f"{OLD}/bob/#me",
    "https://carol.example/#me",
]
"""Not the new WebID of the owner, who gets whatever was granted to it before."""
# Absolute and relative, of the pod and of others, and some that only look as if they were of it.
NAMES: Final = [
    *AGENTS,
    f"{NEW}/alicia/#me",
    f"{OLD}/alice/",
    f"{OLD}/alice",
    f"{OLD}/alice2/x",
    f"{OLD}",
    "http://localhost:30001/alice/x",
    "#it",
    "",
    "b",
    "../",
    "/alice/c/d",
    "../../bob/#me",
    "/bob/#me",
    "//localhost:3000/alice/q",
]

names = st.sampled_from(NAMES)
nodes = names.map(lambda name: f"<{name}>") | st.sampled_from(["_:x", "_:y"])
literals = st.sampled_from([f'"{OLD}/alice/x"', '"é"@de', f'"1"^^<{OLD}/alice/type>'])
triples = st.builds(
    lambda s, p, o: f"{s} <{p}> {o} .", nodes, st.sampled_from(NAMES[:8]), nodes | literals
)
turtle = st.lists(triples, max_size=5).map("\n".join)
contents = turtle.map(lambda text: (text.encode(), "text/turtle")) | st.builds(
    lambda octets, media_type: (octets, media_type),
    st.binary(max_size=40) | st.just(f"see {OLD}/alice/x".encode()),
    st.sampled_from(["image/png", "text/html; charset=utf-8", "application/octet-stream"]),
)
documents = st.dictionaries(
    st.builds(
        lambda folder, name: folder + name,
        st.sampled_from(FOLDERS),
        st.sampled_from(["d", "e.ttl", "caf%C3%A9%20%2F", "index.html", "CON"]),
    ),
    contents,
    max_size=6,
)
modes = st.lists(st.sampled_from(["Read", "Append", "Write", "Control"]), min_size=1, max_size=3)
who = st.sampled_from(
    [
        *(f"acl:agent <{agent}>" for agent in AGENTS),
        "acl:agent </bob/#me>",
        "acl:agent </alice/#me>",
        "acl:agentClass foaf:Agent",
        "acl:agentClass acl:AuthenticatedAgent",
    ]
)


def rule(about: str, agent: str, granted: Sequence[str], *, relative: bool) -> str:
    subject = "./" if about.endswith("/") or not about else about.rpartition("/")[2]
    target = f"<{subject}>" if relative else f"<{OLD}{POD}{about}>"
    listed = ", ".join(f"acl:{mode}" for mode in granted)
    default = f"acl:default {target};" if subject == "./" else ""
    return f"[] a acl:Authorization; {agent}; acl:accessTo {target}; {default} acl:mode {listed} ."


PREFIXES: Final = (
    "@prefix acl: <http://www.w3.org/ns/auth/acl#>. @prefix foaf: <http://xmlns.com/foaf/0.1/>.\n"
)
rules = st.lists(st.tuples(who, modes, st.booleans()), max_size=3)
protected = st.dictionaries(st.sampled_from([*FOLDERS[1:], "d", "a/e.ttl"]), rules, max_size=3)


def acl(about: str, drawn: Sequence[tuple[str, Sequence[str], bool]]) -> str:
    lines = (rule(about, agent, granted, relative=relative) for agent, granted, relative in drawn)
    return PREFIXES + "\n".join(lines)


Pod = Mapping[str, tuple[bytes, str]]


@settings(max_examples=25, deadline=None)
@given(documents, turtle, turtle, protected, rules)
def test_a_pod_says_and_grants_the_same_elsewhere(
    stored: Pod,
    profile: str,
    folder: str,
    acls: Mapping[str, Sequence[tuple[str, Sequence[str], bool]]],
    root_acl: Sequence[tuple[str, Sequence[str], bool]],
) -> None:
    resources = [
        imported(POD, profile),
        imported(f"{POD}a/", folder),
        *(imported(POD + path, *content) for path, content in stored.items()),
        *(
            imported(f"{POD}{about}.acl", acl(about, drawn))
            for about, drawn in acls.items()
            if about in stored or about.endswith("/")
        ),
        *(imported(f"{POD}{each}", None) for each in FOLDERS[1:]),
        imported(f"{POD}.acl", acl("", [("acl:agent </alice/#me>", ["Control"], True), *root_acl])),
    ]
    with tempfile.TemporaryDirectory() as folder_name:
        asyncio.run(_moves(Path(folder_name), resources))


async def _moves(folder: Path, resources: Sequence[object]) -> None:
    old = Settings(root=folder / "old", base_url=OLD)
    new = Settings(root=folder / "new", base_url=NEW)
    for each in (old, new):
        SqliteFacts(prepare_root(each.root).database).write_fact("base-url", each.base_url)
    async with opened_pods(old) as pods:
        source = Resources(resources)  # type: ignore[arg-type]
        report = await pods.importer.run(pods.target("alice", source_id="1"), source.resources())
        assert not report.closed, report.closed
        before = await _contents(pods, POD)
    await export_pod(old, "alice", folder / "alice.zip", on_step=lambda *_: None)
    with opened_archive(folder / "alice.zip") as archive:
        _, report = await import_pod(
            new, archive, name="alicia", dry_run=False, on_step=lambda *_: None
        )
    assert (report.not_taken, report.closed, report.not_renamed) == ([], [], [])
    async with opened_pods(new) as pods:
        after = await _contents(pods, MOVED)
    assert [POD + path for path in before] == [POD + path for path in after]
    for path, (metadata, content) in before.items():
        _compare(path, metadata, content, *after[path])
    for path in before:
        assert _decisions(before, path, OLD + POD) == _decisions(after, path, NEW + MOVED), path


Contents = dict[str, tuple[Metadata, bytes]]


async def _contents(pods: OpenedPods, root: str) -> Contents:
    pod = await pods.records.store.read_pod(root.strip("/"))
    assert pod is not None
    found: Contents = {}
    for each in (await pods.records.store.read_tree(pod.root, limit=1000)).values():
        assert each is not None
        body = await pods.records.store.open_body(each)
        assert body is not None
        found[each.path[len(root) :]] = (each, await whole_body(body))
    return dict(sorted(found.items()))


def _compare(path: str, old: Metadata, before: bytes, new: Metadata, after: bytes) -> None:
    assert (new.kind, new.content_type) == (old.kind, old.content_type)
    if old.kind is ResourceKind.DOCUMENT:
        assert (new.created_ms, new.modified_ms) == (old.created_ms, old.modified_ms)
    if old.content_type != "text/turtle":
        assert after == before
        return
    said = Graph().parse(data=before, format="turtle", publicID=f"{OLD}{POD}{path}")
    expected = Graph()
    for triple in said:
        expected.add(tuple(map(_renamed, triple)))  # type: ignore[arg-type]
    says = Graph().parse(data=after, format="turtle", publicID=f"{NEW}{MOVED}{path}")
    assert isomorphic(says, expected), (before, after)


def _renamed(term: Node) -> Node:
    if isinstance(term, URIRef):
        return URIRef(_moved_name(term))
    if isinstance(term, Literal) and term.datatype is not None:
        return Literal(str(term), datatype=URIRef(_moved_name(term.datatype)))
    return term


def _moved_name(iri: str) -> str:
    old = OLD + POD
    return NEW + MOVED + iri[len(old) :] if iri.startswith(old) else str(iri)


def _decisions(pod: Contents, path: str, url: str) -> list[set[str]]:
    """What each of the agents, and the public, may do, by their old names."""
    of = {agent: {agent if url.startswith(OLD) else _moved_name(agent)} for agent in AGENTS}
    closest, access_to = path, True
    while f"{closest}.acl" not in pod:
        access_to = False
        closest = closest.rstrip("/").rpartition("/")[0]
        closest = f"{closest}/" if closest else ""
    oracle = Oracle(
        pod[f"{closest}.acl"][1].decode(),
        acl_url=f"{url}{closest}.acl",
        subject=url + closest,
        access_to=access_to,
        members={},
    )
    return [oracle.modes(None, None), *(oracle.modes(of[agent], None) for agent in AGENTS)]
