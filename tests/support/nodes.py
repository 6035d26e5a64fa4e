"""Nodes without a balancer: servers on one database of the shared PostgreSQL server.

Each listens at a port of its own, and all have the base URL of the first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.cluster import NODES, ClusterNode, start_together
from tests.support.postgresql import new_database
from tests.support.proxies import free_port


@contextlib.contextmanager
def running_nodes(
    folder: Path,
    *,
    nodes: int = NODES,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[list[ClusterNode]]:
    """Nodes that were started at the same time on an empty database. Each has a data root of its
    own in the folder, and large bodies are in a folder that they share."""
    with new_database() as database, contextlib.ExitStack() as stack:
        port = free_port()
        base_url = f"http://localhost:{port}"
        place = {"PODSTEAD_DATABASE": database, "PODSTEAD_BODIES": str(folder / "bodies")}
        started = [
            ClusterNode(
                folder / f"node{number}",
                options=("--workers", "1", "--base-url", base_url, *options),
                environment={**place, **(environment or {})},
                balancer_url=base_url,
            )
            for number in range(nodes)
        ]
        started[0].port = port
        for node in started:
            stack.callback(node.close)
        start_together(started)
        yield started
