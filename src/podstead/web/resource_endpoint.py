"""Handles every path that no service owns: operations on resources, all through one gate."""

from __future__ import annotations

from collections.abc import Callable

from podstead.core.errors import RequestRefused
from podstead.core.identifiers import is_container
from podstead.core.identity import Identity
from podstead.resources.outcome import ResourceRequest, Result
from podstead.resources.service import ResourceService
from podstead.web.challenges import AuthenticateChallenges
from podstead.web.destination import TRANSFERS, transfer_of
from podstead.web.errors import refusal
from podstead.web.request import Request, operation_of
from podstead.web.resource_responses import Responder
from podstead.web.response import Response


class ResourceEndpoint:
    """Carries out operations on resources and creates the responses."""

    def __init__(
        self,
        *,
        service: ResourceService,
        responder: Responder,
        challenges: AuthenticateChallenges,
        container_deleted: Callable[[], None],
        base_url: str,
    ) -> None:
        """``container_deleted`` is called after each deletion of a container."""
        self._service = service
        self._container_deleted = container_deleted
        self._responder = responder
        self._challenges = challenges
        self._base_url = base_url

    async def handle(self, request: Request, agent: Identity | None) -> Response:
        """Raises ServerTrouble. A refusal becomes a response here, with the headers that it may
        have."""
        resource_request = ResourceRequest(operation_of(request, agent), agent)
        try:
            if request.method in TRANSFERS:
                resource_request.operation = transfer_of(
                    resource_request.operation, request, base_url=self._base_url
                )
            outcome = await self._service.handle(resource_request)
        except RequestRefused as error:
            response = refusal(
                error,
                method=request.method,
                accept=resource_request.operation.accept,
                challenges=self._challenges,
            )
            response.headers.extend(self._responder.refusal_facts(resource_request, error))
            return response
        if outcome.result is Result.DELETED and is_container(request.path):
            self._container_deleted()
        return self._responder.outcome(outcome, resource_request)
