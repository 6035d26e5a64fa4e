"""Determines the groups whose members an agent may learn.

Explaining or previewing what somebody can do reveals which groups have that person as a member.
Anyone who manages a resource can name any group in its rules, including groups of the storage's
owner, and must not learn from the answers who is in a group whose document they may not read.
"""

from __future__ import annotations

from collections.abc import Iterable

from podstead.core.errors import TargetTooLong
from podstead.core.identity import Identity
from podstead.storage.protocol import DocumentSource
from podstead.wac.effective import paths_to_read
from podstead.wac.gate import Gate
from podstead.wac.iris import local_path
from podstead.wac.modes import Mode

_REVEALING = frozenset({Mode.READ, Mode.CONTROL})


class VisibleGroups:
    """The groups visible to one agent, each looked up once."""

    def __init__(
        self, gate: Gate, source: DocumentSource, agent: Identity | None, *, base_url: str
    ) -> None:
        self._gate = gate
        self._source = source
        self._agent = agent
        self._base_url = base_url
        self._known: dict[str, bool] = {}

    async def hidden(self, groups: Iterable[str]) -> frozenset[str]:
        """The groups of this server whose documents the agent may not read. Documents of other
        servers are fetched without credentials, so they are public."""
        return frozenset([group for group in groups if not await self._may_see(group)])

    async def _may_see(self, group: str) -> bool:
        document = group.partition("#")[0]
        if document not in self._known:
            self._known[document] = await self._may_read(document)
        return self._known[document]

    async def _may_read(self, document: str) -> bool:
        path = local_path(document, self._base_url)
        if path is None:
            return True
        try:
            snapshot = await self._source.read_metadata(paths_to_read(path))
        except TargetTooLong:
            return False
        granted = await self._gate.grant(self._agent, None, path, snapshot)
        # With Control, the agent can grant itself Read.
        return bool(_REVEALING & granted.user)
