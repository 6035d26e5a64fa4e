"""Handles git's requests to containers, in git's HTTP protocol, if ``--git`` is set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.operation import InMemoryBody, RequestBody
from podstead.features.git.protocol import GitRequest, Transfer
from podstead.features.git.service import Caller, GitService
from podstead.web.limits import address_key
from podstead.web.request import Request
from podstead.web.response import Response, relayed_response

MAX_SIGNED_BYTES: Final = 4 * 1024 * 1024
"""The maximum size of signed content in a request of git. Helpers for git sign no content."""


async def _whole(body: RequestBody) -> InMemoryBody:
    """Check signed content before git receives any of it, since git acts on each piece (A-145)."""
    return InMemoryBody(await body.read(limit_bytes=MAX_SIGNED_BYTES))


@dataclass(frozen=True, slots=True)
class ClaimedGitRequest:
    """One request of git (:class:`podstead.web.routes.ClaimedRequest`)."""

    asked: GitRequest
    service: GitService
    label = "git"

    @property
    def sequence(self) -> ResourcePath:
        return self.asked.container

    async def handle(self, request: Request, agent: Identity | None) -> Response:
        """Pass the request to git and its response back. Raises RequestRefused and
        ServerTrouble."""
        get = request.fields.get
        transfer = Transfer(
            content_type=get(b"content-type"),
            content_coding=get(b"content-encoding"),
            protocol=get(b"git-protocol"),
            size_bytes=request.body.size_bytes,
        )
        address = request.client_address
        caller = Caller(agent, get(b"origin"), address, network=address_key(address))
        body = request.body
        if agent is not None and agent.content_digest is not None:
            body = await _whole(body)
        answer = await self.service.answer(self.asked, caller, transfer, body)
        fields = [(name.encode(), value.encode("ascii")) for name, value in answer.head.fields]
        return relayed_response(answer.head.status, fields, answer.content)
