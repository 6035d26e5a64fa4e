"""Repositories in a folder that two nodes share: pushes by way of both keep each other's branches.

Nodes without such a folder do not start (``tests/storage/test_postgresql.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.client import Pod, create_pod
from tests.support.cluster import ClusterNode
from tests.support.git import Git, only_repository
from tests.support.git_requests import OPTIONS
from tests.support.nodes import running_nodes

pytestmark = pytest.mark.needs("git")

NODES = 2
PUSHES = 4
CONTAINER = "private/notes"


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Sequence[ClusterNode]]:
    """Each has a link to the shared folder in its data root."""
    (tmp_path / "shared").mkdir(mode=0o700)
    for number in range(NODES):
        root = tmp_path / f"node{number}"
        root.mkdir(mode=0o700)
        (root / "git").symlink_to(tmp_path / "shared")
    with running_nodes(tmp_path, nodes=NODES, options=OPTIONS) as nodes:
        yield nodes


def urls_of(pod: Pod, nodes: Sequence[ClusterNode]) -> list[str]:
    """The URL of the repository by way of each node, taking turns."""
    urls = [f"http://localhost:{node.port}{pod.root}{CONTAINER}" for node in nodes]
    return [urls[number % NODES] for number in range(PUSHES)]


def test_pushes_by_way_of_two_nodes_keep_each_others_branches(
    nodes: Sequence[ClusterNode], git: Git
) -> None:
    pod = create_pod(nodes[0])
    urls = urls_of(pod, nodes)
    owner = git.with_token(pod.token)
    works = [owner.new(f"work{number}") for number in range(PUSHES)]
    with ThreadPoolExecutor(PUSHES) as threads:
        for round_ in range(3):  # the first creates the repository
            for work in works:
                work.commit("a", f"{work.place} {round_}")
            pushed = [
                threads.submit(work, "push", "--quiet", url, f"main:of{number}")
                for number, (work, url) in enumerate(zip(works, urls, strict=True))
            ]
            assert [each.result() for each in pushed] == [""] * PUSHES
            for url in urls[:NODES]:
                found = owner.branches(url)
                for number, work in enumerate(works):
                    assert found[f"refs/heads/of{number}"] == work.tip()
        clones = [owner.cloned(url, f"clone{number}") for number, url in enumerate(urls)]
        for number, clone in enumerate(clones):
            clone("checkout", "--quiet", "-B", "main", f"{owner.branches(urls[0])['HEAD']}")
            clone.commit("b", f"mine {number}")
        codes = [
            each.code
            for each in threads.map(
                lambda clone: clone.ends("push", "--quiet", "origin", "main:contended"), clones
            )
        ]
    assert codes.count(0) == 1
    contended = {owner.branches(url)["refs/heads/contended"] for url in urls}
    assert contended == {clones[codes.index(0)].tip()}
    Git(only_repository(nodes[0].root))("fsck", "--full", "--strict")
