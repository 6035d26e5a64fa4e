"""Handles every path that no service owns: operations on resources, all through one gate."""

from collections.abc import Mapping
from html import escape
from typing import Final, Protocol
from urllib.parse import urlsplit

from msgspec.structs import replace

from podstead.core import errors, identifiers
from podstead.core.clock import Clock
from podstead.core.identity import Identity
from podstead.core.media_types import HTML, RDF_TYPES, essence, is_passive
from podstead.core.operation import QUERY, Operation
from podstead.resources.outcome import Outcome, ResourceRequest, Result
from podstead.resources.service import ResourceService
from podstead.storage.open_body import AddressedBody
from podstead.storage.pods import new_name_of, pod_tombstone
from podstead.storage.protocol import EntryRegistry, PodRegistry
from podstead.web import authentication, authority, browsers, routes
from podstead.web.errors import refusal
from podstead.web.pages import addresses, templates
from podstead.web.request import Request, operation_of
from podstead.web.resource_responses import Responder
from podstead.web.response import NO_STORE, Response, content_response, empty_response

# Former names of pods. Requests for the old URLs of a pod are redirected for as long as the
# old name is reserved (:mod:`podstead.storage.pods`).
#
# Only asked when a request would be refused: a pod that exists is never redirected. The new URL
# decides who has access; that a pod was renamed is no secret, as its name is not.

_SAFE = frozenset({"GET", "HEAD"})


class FormerPodStore(PodRegistry, EntryRegistry, Protocol):
    """What is needed of the store."""


class FormerPods:
    """Redirects requests for pods under their former names."""

    def __init__(self, store: FormerPodStore, *, base_url: str, clock: Clock) -> None:
        self._store = store
        self._base_url = base_url
        self._clock = clock

    async def redirect(
        self, method: str, path: identifiers.ResourcePath, query: bytes
    ) -> Response | None:
        """The redirect to the same path of the pod; ``None`` if no pod had this name. Raises
        StorageError."""
        root = identifiers.storage_root(path)
        if root is None:
            return None
        name = root.strip("/")
        if await self._store.read_pod(name) is not None:
            return None
        tombstone = await self._store.read_entry(pod_tombstone(name), now_ms=self._clock.now_ms())
        new_name = None if tombstone is None else new_name_of(tombstone)
        if new_name is None:
            return None
        location = f"{self._base_url}/{new_name}/{path[len(root) :]}"
        if query:
            location += f"?{query.decode('latin-1')}"
        # RFC 9110 section 15.4.9: other methods, and their content, are sent again as they were.
        status = 301 if method in _SAFE else 308
        return empty_response(status, [(b"location", location.encode("latin-1")), NO_STORE])


# Redirects of reads to where the content is stored.
#
# The content of a public resource can be fetched from S3 by its readers, with a URL that is signed
# for a short time, so that large bodies do not pass through the server. What is not public never
# is, since whoever has the URL can use it.
#
# The server answers itself where the redirect would be wrong or of no use:
#
# - requests with credentials, which S3 would refuse, and conditional ones, because S3 has other
#   entity tags and dates;
# - pages that a browser opens, whose address would be one that expires;
# - requests of its own pages, whose policy allows no other origin;
# - types in which browsers run something: all pods share the origin of the bucket, and the policy
#   that keeps content from acting for its origin is missing there.

FROM_BYTES: Final = 1024 * 1024
"""The size from which a redirect costs less than it saves."""

LASTS_S: Final = 300
"""How long the URL is valid: so long content can be read after it has ceased to be public."""

_READ: Final = frozenset({Result.REPRESENTED, Result.PARTIAL})


async def redirect_of(
    request: Request, resource_request: ResourceRequest, outcome: Outcome
) -> str | None:
    """The URL to which the sender of an authorized read is sent; ``None`` if the server answers
    itself. Raises StorageError."""
    operation, grant = resource_request.operation, resource_request.grant
    if (
        operation.method != "GET"
        or outcome.result not in _READ
        or resource_request.agent is not None
        or request.fields.authorization
        or grant is None
        or not grant.public_may_read
        or operation.conditions.any_given
        or operation.if_range is not None
        or request.fields.get(b"sec-fetch-site") == "same-origin"
        or request.fields.get(b"sec-fetch-mode") == "navigate"
    ):
        return None
    representation = outcome.representation
    if representation is None or not isinstance(representation.body, AddressedBody):
        return None
    body, content_type = representation.body, representation.content_type
    if body.size_bytes < FROM_BYTES or not is_passive(content_type):
        return None
    return await body.address(content_type, lasts_s=LASTS_S)


# The header fields of COPY and MOVE (RFC 4918 sections 10.2, 10.3 and 10.6).

TRANSFERS = frozenset({"COPY", "MOVE"})
_WITH_MORE = TRANSFERS | {QUERY}

_OVERWRITE = {None: True, "T": True, "t": True, "F": False, "f": False}


def transfer_of(operation: Operation, request: Request, *, base_url: str) -> Operation:
    """The operation with its destination and the other parameters of a copy or move.

    Raises BadRequest, ForeignDestination, ForbiddenDestination, and UnsupportedMediaType for a
    request with content, which means nothing here (RFC 4918 section 8.4).
    """
    if request.body.announced:
        raise errors.UnsupportedMediaType(f"{operation.method} has no content")
    destination = request.fields.get(b"destination")
    if destination is None:
        raise errors.BadRequest("The Destination header is missing")
    overwrite = _OVERWRITE.get(request.fields.get(b"overwrite"))
    if overwrite is None:
        raise errors.BadRequest("The Overwrite header must be T or F")
    return replace(
        operation,
        destination=destination_path(destination, base_url=base_url, host=request.host),
        overwrite=overwrite,
        with_members=_with_members(operation.method, request.fields.get(b"depth")),
    )


def destination_path(destination: str, *, base_url: str, host: str) -> identifiers.ResourcePath:
    """The path of a Destination: an absolute URL on this server, or an absolute path.

    ``host`` is the host that the request was sent to. Raises BadRequest, ForeignDestination and
    ForbiddenDestination.
    """
    try:
        parts = urlsplit(destination.strip())
    except ValueError as error:
        raise errors.BadRequest("The Destination header is not a URL") from error
    if parts.query or parts.fragment:
        raise errors.BadRequest("The Destination header must be a URL without query and fragment")
    if parts.netloc and parts.netloc.lower() not in authority.hosts_of(base_url) | {host}:
        raise errors.ForeignDestination("The destination is on another server")
    if parts.scheme not in ("http", "https") if parts.netloc else parts.scheme:
        raise errors.BadRequest("The Destination header must be an http URL or an absolute path")
    try:
        path = identifiers.parse_path((parts.path or "/").encode("latin-1"))
    except UnicodeEncodeError as error:
        raise errors.BadRequest("The Destination header must be percent-encoded") from error
    root = identifiers.storage_root(path)
    if routes.is_reserved(path) or (
        root is not None and path == identifiers.storage_description_of(root)
    ):
        raise errors.ForbiddenDestination("No resource can have the URL of the destination")
    return path


def _with_members(method: str, depth: str | None) -> bool:
    if depth is None or depth.lower() == "infinity":
        return True
    if method == "COPY" and depth == "0":
        return False
    allowed = "0 or infinity" if method == "COPY" else "infinity"
    raise errors.BadRequest(f"The Depth of {method} must be {allowed}")


_INDEX_PAGE = "index.html"


class ResourceEndpoint:
    """Carries out operations on resources and creates the responses."""

    def __init__(
        self,
        *,
        service: ResourceService,
        responder: Responder,
        challenges: authentication.AuthenticateChallenges,
        former_pods: FormerPods,
        base_url: str,
        redirects_reads: bool = False,
        queries: Mapping[str, routes.Endpoint] = {},
    ) -> None:
        """``redirects_reads`` sends readers to where the content is stored. ``queries`` answer the
        QUERY method on containers, by the media type of the content."""
        self._service = service
        self._responder = responder
        self._challenges = challenges
        self._former_pods = former_pods
        self._base_url = base_url
        self._redirects_reads = redirects_reads
        self._queries = queries

    async def handle(self, request: Request, agent: Identity | None) -> Response:
        """Raises ServerTrouble. A refusal becomes a response here, with the headers that it may
        have."""
        if agent is None and browsers.is_navigation(request):
            return await self._navigate(request)
        resource_request = ResourceRequest(operation_of(request, agent), agent)
        try:
            if request.method in _WITH_MORE:
                if request.method == QUERY:
                    return await self._query(request, resource_request)
                resource_request.operation = transfer_of(
                    resource_request.operation, request, base_url=self._base_url
                )
            outcome = await self._service.handle(resource_request)
        except errors.RequestRefused as error:
            return await self._redirect(request) or self._refused(error, resource_request, request)
        if self._redirects_reads:
            address = await redirect_of(request, resource_request, outcome)
            if address is not None:
                return self._responder.redirect(outcome, resource_request, address)
        return self._responder.outcome(outcome, resource_request)

    async def _query(self, request: Request, resource_request: ResourceRequest) -> Response:
        """The response to a query, for whoever may read the container (RFC 10008).

        Raises what a GET raises, MethodNotAllowed where there can be no members, BadRequest without
        a Content-Type, and UnsupportedMediaType.
        """
        operation, agent = resource_request.operation, resource_request.agent
        target, stated = operation.target, operation.content_type
        resource_request.operation = Operation(
            "HEAD", target, origin=operation.origin, signed_url=operation.signed_url
        )
        await self._service.handle(resource_request)
        resource_request.operation = operation
        if "POST" not in identifiers.allowed_methods(target):
            raise errors.MethodNotAllowed("Only containers support QUERY", allow=())
        if stated is None:
            raise errors.BadRequest("The Content-Type of the query is missing")
        endpoint = self._queries.get(essence(stated))
        if endpoint is None:
            accepted = ", ".join(self._queries)
            raise errors.UnsupportedMediaType(f"The Content-Type of a query is one of {accepted}")
        return await endpoint(request, agent)

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
        if identifiers.is_container(operation.target):
            index = await self._index_page(operation)
            return index or _to_page(operation.target, operation.method)
        resource_request = ResourceRequest(operation, None)
        try:
            outcome = await self._service.handle(resource_request)
        except errors.NotAuthenticated:
            return _to_page(operation.target, operation.method)
        except errors.RequestRefused as error:
            return self._refused(error, resource_request, request)
        if outcome.result is not Result.MOVED and _is_rdf(outcome):
            return _to_page(operation.target, operation.method)
        return self._responder.outcome(outcome, resource_request)

    async def _index_page(self, operation: Operation) -> Response | None:
        """The page that the owner has stored for visitors of a container, if they may read it."""
        target = identifiers.ResourcePath(operation.target + _INDEX_PAGE)
        request = ResourceRequest(replace(operation, target=target), None)
        try:
            outcome = await self._service.handle(request)
        except errors.RequestRefused:
            return None
        stored = outcome.metadata
        if stored is None or essence(stored.content_type) != HTML:
            return None
        return self._responder.outcome(outcome, request)

    async def _redirect(self, request: Request) -> Response | None:
        """The redirect of a request for a pod that has another name now."""
        return await self._former_pods.redirect(request.method, request.path, request.query)

    def _refused(
        self, error: errors.RequestRefused, resource_request: ResourceRequest, request: Request
    ) -> Response:
        if isinstance(error, errors.MethodNotAllowed):
            error.allow = self._responder.methods(request.path)
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


def _to_page(target: identifiers.ResourcePath, method: str) -> Response:
    """With the note that RFC 9110 section 15.4.4 asks for."""
    address = addresses.files_url(target)
    note = (
        f'<!doctype html>\n<title>See other</title>\n<a href="{escape(address)}">See the page</a>\n'
    )
    headers = [(b"location", address.encode("ascii")), NO_STORE, templates.PAGE_POLICY]
    return content_response(
        note.encode(), templates.HTML, method=method, status=303, headers=headers
    )


def _is_rdf(outcome: Outcome) -> bool:
    stored = outcome.metadata
    return stored is None or essence(stored.content_type) in RDF_TYPES
