"""Handles every path that no service owns: operations on resources, all through one gate."""

from __future__ import annotations

from html import escape

from msgspec.structs import replace

from podstead.core.errors import NotAuthenticated, RequestRefused
from podstead.core.identifiers import ResourcePath, is_container
from podstead.core.identity import Identity
from podstead.core.media_types import HTML, RDF_TYPES, essence
from podstead.core.operation import Operation
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.resources.service import ResourceService
from podstead.web.challenges import AuthenticateChallenges
from podstead.web.destination import TRANSFERS, transfer_of
from podstead.web.errors import refusal
from podstead.web.former_pods import FormerPods
from podstead.web.navigations import is_navigation
from podstead.web.pages.addresses import files_url
from podstead.web.pages.templates import HTML as PAGE_TYPE
from podstead.web.pages.templates import PAGE_POLICY
from podstead.web.read_redirects import redirect_of
from podstead.web.request import Request, operation_of
from podstead.web.resource_responses import Responder
from podstead.web.response import NO_STORE, Response, content_response

_INDEX_PAGE = "index.html"


class ResourceEndpoint:
    """Carries out operations on resources and creates the responses."""

    def __init__(
        self,
        *,
        service: ResourceService,
        responder: Responder,
        challenges: AuthenticateChallenges,
        former_pods: FormerPods,
        base_url: str,
        redirects_reads: bool = False,
    ) -> None:
        """``redirects_reads`` sends readers to where the content is stored
        (``read_redirects.py``)."""
        self._service = service
        self._responder = responder
        self._challenges = challenges
        self._former_pods = former_pods
        self._base_url = base_url
        self._redirects_reads = redirects_reads

    async def handle(self, request: Request, agent: Identity | None) -> Response:
        """Raises ServerTrouble. A refusal becomes a response here, with the headers that it may
        have."""
        if agent is None and is_navigation(request):
            return await self._navigate(request)
        resource_request = ResourceRequest(operation_of(request, agent), agent)
        try:
            if request.method in TRANSFERS:
                resource_request.operation = transfer_of(
                    resource_request.operation, request, base_url=self._base_url
                )
            outcome = await self._service.handle(resource_request)
        except RequestRefused as error:
            return await self._redirect(request) or self._refused(error, resource_request, request)
        if self._redirects_reads:
            address = await redirect_of(request, resource_request, outcome)
            if address is not None:
                return self._responder.redirect(outcome, resource_request, address)
        return self._responder.outcome(outcome, resource_request)

    async def _navigate(self, request: Request) -> Response:
        """The response to a browser without credentials.

        A page shows containers and RDF documents, and whatever the public may not read, since the
        page knows who is signed in. The gate has decided before; its refusal is the same whatever
        is stored, and so is this redirect.
        """
        operation = replace(operation_of(request, None), accept=None)
        elsewhere = await self._redirect(request)
        if elsewhere is not None:
            return elsewhere
        if is_container(operation.target):
            index = await self._index_page(operation)
            return index or _to_page(operation.target, operation.method)
        resource_request = ResourceRequest(operation, None)
        try:
            outcome = await self._service.handle(resource_request)
        except NotAuthenticated:
            return _to_page(operation.target, operation.method)
        except RequestRefused as error:
            return self._refused(error, resource_request, request)
        if outcome.result is not Result.MOVED and _is_rdf(outcome):
            return _to_page(operation.target, operation.method)
        return self._responder.outcome(outcome, resource_request)

    async def _index_page(self, operation: Operation) -> Response | None:
        """The page that the owner has stored for visitors of a container, if they may read it."""
        target = ResourcePath(operation.target + _INDEX_PAGE)
        request = ResourceRequest(replace(operation, target=target), None)
        try:
            outcome = await self._service.handle(request)
        except RequestRefused:
            return None
        stored = outcome.metadata
        if stored is None or essence(stored.content_type) != HTML:
            return None
        return self._responder.outcome(outcome, request)

    async def _redirect(self, request: Request) -> Response | None:
        """The redirect of a request for a pod that has another name now."""
        return await self._former_pods.redirect(request.method, request.path, request.query)

    def _refused(
        self, error: RequestRefused, resource_request: ResourceRequest, request: Request
    ) -> Response:
        response = refusal(
            error,
            method=request.method,
            accept=request.fields.get(b"accept"),
            challenges=self._challenges,
            target=request.path,
            accept_language=request.fields.get(b"accept-language"),
        )
        response.headers.extend(self._responder.refusal_facts(resource_request, error))
        return response


def _to_page(target: ResourcePath, method: str) -> Response:
    """With the note that RFC 9110 section 15.4.4 asks for."""
    address = files_url(target)
    note = (
        f'<!doctype html>\n<title>See other</title>\n<a href="{escape(address)}">See the page</a>\n'
    )
    headers = [(b"location", address.encode("ascii")), NO_STORE, PAGE_POLICY]
    return content_response(note.encode(), PAGE_TYPE, method=method, status=303, headers=headers)


def _is_rdf(outcome: Outcome) -> bool:
    stored = outcome.metadata
    return stored is None or essence(stored.content_type) in RDF_TYPES
