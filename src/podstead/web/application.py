"""The ASGI application: the steps that every request passes.

It reads the request, responds to OPTIONS, authenticates, dispatches, and adds the headers that
every response has. Any error that is raised below becomes a response here. Errors of the server are
logged, once, and the response does not contain their text.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from msgspec.structs import replace

from podstead.authn.authenticate import Authenticator, RequestCredentials
from podstead.authn.resource_tokens import DpopNonces
from podstead.core import errors, request_context
from podstead.core.clock import Clock
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.operation import QUERY
from podstead.storage.dependencies import Prefetch, ReadAhead
from podstead.storage.disk_space import is_full
from podstead.wac.effective import paths_to_read
from podstead.web import request as web_request
from podstead.web import websocket
from podstead.web.asgi import Headers, Receive, Scope, Send
from podstead.web.authentication import AuthenticateChallenges, LimitedAuthentication
from podstead.web.authority import Authorities, FormerHost
from podstead.web.body import BodyPace, RecheckedBody, RequestReceiver
from podstead.web.codes import WebCodes
from podstead.web.content_coding import apply_content_coding
from podstead.web.cors import CorsPolicy, cors_headers
from podstead.web.errors import refusal
from podstead.web.limits import InvalidCredentialLimit, address_key
from podstead.web.request_counts import OTHER_METHOD, RESOURCES, UNREADABLE, RequestCounts
from podstead.web.request_ids import RequestIds, id_field, peer_of
from podstead.web.resource_responses import options_response, supported_methods
from podstead.web.response import HeaderField, Response, empty_response
from podstead.web.response_cache import ResponseCache
from podstead.web.routes import Access, Claim, ClaimedRequest, Route, Routes, is_reserved
from podstead.web.sending import send_response
from podstead.web.websocket import SocketClosed, WebSocket

logger = logging.getLogger("podstead.web")

_KNOWN_METHODS = ("OPTIONS", "HEAD", "GET", "PUT", "PATCH", "POST", "DELETE", "COPY", "MOVE", QUERY)
_READ_AHEAD = frozenset(_KNOWN_METHODS) - {"OPTIONS"}
_REDIRECTED = frozenset({"GET", "HEAD"})
_REFUSED_METHODS = frozenset({"TRACE", "CONNECT"})
_ON_EVERY_RESPONSE: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_FULL_DISK_LOG_PERIOD_MS = 60_000
_SWITCHED = 101
_HSTS = (b"strict-transport-security", b"max-age=31536000")


@dataclass(frozen=True, slots=True)
class Lifespan:
    """What a worker does when it starts and when it stops.

    ``drain`` is called before the HTTP server closes its connections, and ends open sockets and
    streams.
    """

    start: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]]
    drain: Callable[[], Awaitable[None]]


SLOW_REQUEST_S: Final = 1.0
"""A request whose response begins later is a slow one."""

Answers = Callable[[str], Awaitable[bytes]]
SlowRequestListener = Callable[[str, str, int, int], None]
"""Called with the method, the path, the status, and how long the request took in milliseconds."""


class Application:
    """The ASGI application of one worker."""

    is_logged = False
    """Whether each request is logged (:mod:`podstead.web.access_log`)."""

    def __init__(
        self,
        *,
        base_url: str,
        routes: Routes,
        authenticator: Authenticator,
        authorities: Authorities,
        body_pace: BodyPace,
        invalid_credentials: InvalidCredentialLimit,
        challenges: AuthenticateChallenges,
        responses: ResponseCache,
        lifespan: Lifespan,
        clock: Clock,
        ids: RequestIds,
        nonces: DpopNonces | None = None,
        claims: Sequence[Claim] = (),
        certificates: web_request.ClientCertificates | None = None,
        provider_routes: Mapping[str, Routes] = {},
        slow_request: SlowRequestListener | None = None,
        requests: RequestCounts | None = None,
        answers: Answers | None = None,
        resource_headers: Sequence[HeaderField] = (),
        accept_query: bytes = b"",
        prefetch: ReadAhead | None = None,
    ) -> None:
        """``nonces`` are the nonces that DPoP proofs must contain, if required. ``claims`` are
        asked for the requests to paths of resources that features answer. ``certificates`` finds
        client certificates, if they are accepted. ``provider_routes`` has the routes of an
        identity provider with its own origin, by Host value; all other hosts have ``routes``.
        ``slow_request`` is called for requests whose responses begin late. ``requests`` counts all
        of them. ``answers`` answers what the main process asks about this worker.
        ``resource_headers`` are further header fields of responses to OPTIONS of resources, and
        ``accept_query`` lists the media types of queries to containers; empty if none is answered.
        ``prefetch`` reads what a request for a resource needs before it is authenticated, if the
        store does that."""
        self._base_url = base_url
        self._scheme = base_url.partition(":")[0]
        self._challenges = challenges
        self.routes = routes
        self.provider_routes = provider_routes
        self._authenticator = authenticator
        self._authorities = authorities
        self._body_pace = body_pace
        self._authentication = LimitedAuthentication(authenticator, invalid_credentials)
        self._responses = responses
        self.lifespan = lifespan
        self._clock = clock
        self._full_logged_ms = -_FULL_DISK_LOG_PERIOD_MS
        self._nonces = nonces
        self._claims = claims
        self._certificates = certificates
        self._slow_request = slow_request
        self.requests = requests or RequestCounts()
        self._answers = answers
        self._prefetch = prefetch
        self._resource_headers = resource_headers
        self._accept_query = accept_query
        self._methods = _KNOWN_METHODS if accept_query else _KNOWN_METHODS[:-1]
        self.ids = ids
        self._common = list(_ON_EVERY_RESPONSE)
        self._secure = base_url.startswith("https:")
        if self._secure:
            self._common.append(_HSTS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            incoming = RequestReceiver(receive, scope)
            response = await self._respond(scope, incoming)
            take_timeout_s = self._body_pace.idle_timeout_s
            await send_response(response, scope, incoming, send, take_timeout_s=take_timeout_s)
            await incoming.linger()
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._connect(scope, receive, send)

    async def answer(self, question: str) -> bytes:
        """The answer to a question of the main process about this worker."""
        return b"" if self._answers is None else await self._answers(question)

    async def drain(self) -> None:
        """End sockets and streams, which would stay open otherwise, because the worker is
        stopping."""
        await self.lifespan.drain()

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to the handshake of a WebSocket, which is a GET (RFC 6455 section 4.1)."""
        await receive()
        scope = {**scope, "method": "GET"}
        socket = WebSocket(scope, receive, send)
        route, began_s = UNREADABLE, monotonic()
        request_context.set_request_id(self.ids.mark(scope))
        try:
            request = await web_request.read_request(
                scope, receive, body_pace=self._body_pace, authorities=self._authorities
            )
            request_context.set_requester(
                address_key(request.client_address), request.client_address
            )
            service = self._routes_at(request.host).service(request.path)
            if service is None or service.socket is None:
                raise errors.NotFound("There is no WebSocket at this URL")
            route = service.label
            own = service.access is Access.OWN
            agent = None if own else await self._authenticate(request, None)
            if agent is not None:
                request_context.note_agent(agent.iri)
            await service.socket(socket, request, agent)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            refused = self._answer_to(error, scope)
        else:
            self.note_socket(route, scope, _SWITCHED, monotonic() - began_s)
            return
        self.note_socket(route, scope, refused.status, monotonic() - began_s)
        with contextlib.suppress(SocketClosed):
            if socket.is_accepted:
                await socket.close(websocket.INTERNAL_ERROR)
            else:
                self._finish(refused, scope, CorsPolicy.REFLECTED)
                await socket.refuse(refused)

    def note_socket(self, route: str, scope: Scope, status: int, took_s: float) -> None:  # noqa: ARG002 - for those that log it
        """Note a WebSocket that has ended or was refused."""
        self.requests.count(route, scope["method"], status)

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        key = self._responses.key(scope)
        if key is None:
            return await self._make(scope, receive)
        response, ahead = self._responses.get(key), None
        if response is not None and response.dependencies is not None and self._prefetch:
            with contextlib.suppress(errors.StorageError):  # which the new response says
                ahead = self._prefetch(response.dependencies.metadata)
            if ahead is None or not await ahead.confirms(response.dependencies):
                response = None
        if response is None:
            response = await self._make(scope, receive, ahead)
            self._responses.keep(key, response)
        else:
            response.tally.cached += 1
        return response

    async def _make(
        self, scope: Scope, receive: Receive, ahead: Prefetch | None = None
    ) -> Response:
        """A new response. ``ahead`` is what was read ahead for the request, if that was done."""
        began_s = monotonic()
        sharing = CorsPolicy.REFLECTED
        claimed: ClaimedRequest | None = None
        route = UNREADABLE
        mark = None
        if not self.is_logged:
            mark = self.ids.mark(scope)
            request_context.set_request_id(mark)
        try:
            request = await web_request.read_request(
                scope,
                receive,
                body_pace=self._body_pace,
                authorities=self._authorities,
                certificates=self._certificates,
            )
            request_context.set_requester(
                address_key(request.client_address), request.client_address
            )
            routes = self._routes_at(request.host)
            service = routes.service(request.path)
            route = RESOURCES if service is None else service.label
            if service is not None:
                sharing = service.sharing
            elif self._claims and routes is self.routes and not is_reserved(request.path):
                claimed = self._claimed(request)
                route = RESOURCES if claimed is None else claimed.label
            if self._prefetch is None or service is not None or claimed is not None:
                response = await self._answer(request, routes, service, claimed)
            else:
                response = await self._answer_ahead(request, routes, self._prefetch, ahead)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            response = self._answer_to(error, scope, claimed=claimed is not None)
        else:
            await apply_content_coding(
                response,
                request.fields,
                method=request.method,
                secure=self._secure,
                certified=request.certificate is not None,
            )
        self._finish(response, scope, sharing)
        if mark is None:
            response.requester = (
                request_context.requester_address() or peer_of(scope),
                request_context.requester_agent(),
            )
        elif mark.is_used:
            response.headers.append(id_field(mark))
            response.of_stored_state = False
        self._note(route, scope, response, monotonic() - began_s)
        return response

    def _claimed(self, request: web_request.Request) -> ClaimedRequest | None:
        """The request, if a feature claims it."""
        for claim in self._claims:
            claimed = claim(request.method, request.path, request.query)
            if claimed is not None:
                return claimed
        return None

    def _note(self, route: str, scope: Scope, response: Response, took_s: float) -> None:
        """Note that a request was answered."""
        method, status = scope["method"], response.status
        counted = method if method in _KNOWN_METHODS else OTHER_METHOD
        response.tally = self.requests.note(route, counted, status, took_s)
        if took_s >= SLOW_REQUEST_S and self._slow_request is not None:
            self._slow_request(method, scope["path"], status, round(took_s * 1000))

    def _answer_to(self, error: Exception, scope: Scope, *, claimed: bool = False) -> Response:
        """The response to a request that failed. Errors of the server are logged."""
        if isinstance(error, FormerHost) and scope["method"] in _REDIRECTED:
            return _moved(error.base_url, scope)
        trouble = not isinstance(error, errors.PodsteadError) or isinstance(
            error, errors.ServerTrouble
        )
        if trouble and is_full(error):
            self._log_full_disk()
            error = errors.DiskFull()
        elif not isinstance(error, errors.PodsteadError):
            logger.error("Unexpected error while handling a request", exc_info=error)
            error = errors.ServerTrouble()
        elif isinstance(
            error, errors.Overloaded | errors.RemoteUnavailable | errors.StoreUnavailable
        ):
            logger.warning("Responded to a request with 503: %s", errors.cause_text(error))
        elif trouble:
            logger.error("A request could not be handled", exc_info=error)
        return self._refuse(error, scope, claimed=claimed)

    def _log_full_disk(self) -> None:
        """Log that the disk is full, at most once in a period."""
        now_ms = self._clock.now_ms()
        if not 0 <= now_ms - self._full_logged_ms < _FULL_DISK_LOG_PERIOD_MS:
            self._full_logged_ms = now_ms
            logger.error(
                "The disk is full or nearly full: nothing new is stored until there is room again"
            )

    def _finish(self, response: Response, scope: Scope, sharing: CorsPolicy) -> None:
        """Add the headers that every response has."""
        if self._nonces is not None:
            _give_nonce(response, scope, self._nonces)
        response.headers.append((b"vary", response.vary))
        response.headers.extend(self._common)
        response.headers.extend(_cors(scope, sharing))

    def _routes_at(self, host: str) -> Routes:
        return self.provider_routes.get(host, self.routes) if self.provider_routes else self.routes

    async def _answer(
        self,
        request: web_request.Request,
        routes: Routes,
        service: Route | None,
        claimed: ClaimedRequest | None,
    ) -> Response:
        method, path = request.method, request.path
        if method not in self._methods:
            self._refuse_method(method, path, routes)
        if method == "OPTIONS":
            return self._options(path, routes, of_server=request.is_of_server)
        own = service is not None and service.access is Access.OWN
        agent = None if own else await self._authenticate(request, claimed)
        if agent is not None:
            request_context.note_agent(agent.iri)
        if agent is not None and request.body.announced:
            request = self._with_sender_checked_again(request, claimed, agent)
        if agent is not None and agent.content_digest is not None:
            request = await web_request.with_checked_content(request, agent.content_digest)
        if claimed is not None:
            return await claimed.handle(request, agent)
        return await routes.endpoint(service, path, method)(request, agent)

    async def _answer_ahead(
        self,
        request: web_request.Request,
        routes: Routes,
        prefetch: ReadAhead,
        ahead: Prefetch | None,
    ) -> Response:
        """Answer a request for a resource, with one question to the store before all others, unless
        it was asked."""
        try:
            paths = paths_to_read(request.path)
        except errors.TargetTooLong:
            paths = ()
        if not paths or request.method not in _READ_AHEAD:
            return await self._answer(request, routes, None, None)
        ahead = ahead or prefetch(paths)
        async with ahead:
            response = await self._answer(request, routes, None, None)
            if response.of_stored_state:
                response.dependencies = ahead.dependencies()
        return response

    def _options(self, path: ResourcePath, routes: Routes, *, of_server: bool) -> Response:
        if of_server:  # the methods that some resource supports (RFC 9110 section 9.3.7)
            return _allowing(self._methods)
        methods = routes.service_methods(path)
        if methods is None:
            return options_response(
                path,
                base_url=self._base_url,
                further=self._resource_headers,
                accept_query=self._accept_query,
            )
        service = routes.service(path)
        return _allowing(methods, () if service is None else service.options)

    def _refuse_method(self, method: str, path: ResourcePath, routes: Routes) -> None:
        if method not in _REFUSED_METHODS:
            raise errors.MethodUnknown("This server does not support the method")
        allow = routes.service_methods(path) or supported_methods(path, self._accept_query)
        raise errors.MethodNotAllowed(WebCodes.METHOD_NOT_ALLOWED, method=method, allow=allow)

    async def _authenticate(
        self, request: web_request.Request, claimed: ClaimedRequest | None
    ) -> Identity | None:
        fields = request.fields
        if (
            not fields.authorization
            and request.certificate is None
            and not self._authenticator.elsewhere
        ):
            return None
        known = self._authenticator.recall(fields.authorization, fields.proofs)
        if known is not None:
            return known
        return await self._authentication.authenticate(
            self._credentials(request, claimed), client_address=request.client_address
        )

    def _with_sender_checked_again(
        self, request: web_request.Request, claimed: ClaimedRequest | None, identity: Identity
    ) -> web_request.Request:
        """The request with a body that checks the credentials again if it takes long to arrive."""

        async def check_again() -> None:  # rarely called, so nothing is prepared for it
            await self._authenticator.check_again(self._credentials(request, claimed), identity)

        body = RecheckedBody(request.body, check_again=check_again, clock=self._clock)
        return replace(request, body=body)

    def _credentials(
        self, request: web_request.Request, claimed: ClaimedRequest | None
    ) -> RequestCredentials:
        certificate = None
        if request.certificate is not None and not request.fields.authorization:
            certificate = request.certificate.der()
        target = request.raw_path + (b"?" + request.query if request.query else b"")
        return RequestCredentials(
            authorization=request.fields.authorization,
            proofs=request.fields.proofs,
            method=request.method,
            url=f"{self._scheme}://{request.host}{target.decode('latin-1')}",
            client_address=address_key(request.client_address),
            has_content=request.body.announced,
            sequence=None if claimed is None else claimed.sequence,
            certificate=certificate,
        )

    def _refuse(
        self, error: errors.PodsteadError, scope: Scope, *, claimed: bool = False
    ) -> Response:
        return refusal(
            error,
            method=scope["method"],
            accept=_first(scope, b"accept"),
            challenges=self._challenges,
            claimed=claimed,
            accept_language=_first(scope, b"accept-language"),
        )

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.lifespan.start()
                except Exception as error:
                    logger.exception("This worker could not start")
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    raise
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.lifespan.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _first(scope: Scope, field: bytes) -> str | None:
    """The first value of a header field, also of a request that cannot be read."""
    value: bytes | None = next((value for name, value in scope["headers"] if name == field), None)
    return None if value is None else value.decode("latin-1")


def _allowing(methods: Iterable[str], fields: Iterable[HeaderField] = ()) -> Response:
    return empty_response(204, [(b"allow", ", ".join(methods).encode("ascii")), *fields])


def _moved(base_url: str, scope: Scope) -> Response:
    """The redirect from a former base URL to the same path (RFC 9110 section 15.4.2)."""
    query, target = scope["query_string"], scope["raw_path"]
    path = web_request.path_of(target) if target.startswith(b"/") else b"/"
    location = base_url.encode("ascii") + path
    return empty_response(301, [(b"location", location + b"?" + query if query else location)])


def _give_nonce(response: Response, scope: Scope, nonces: DpopNonces) -> None:
    """Send a client that sent a proof the nonce for its next one (RFC 9449 section 8.2).

    Such a response must not be cached, because clients would use the nonce after its expiry.
    """
    nonce = nonces.to_give([value for name, value in scope["headers"] if name == b"dpop"])
    if nonce is None:
        return
    kept = [each for each in response.headers if each[0] != b"cache-control"]
    given = [(b"dpop-nonce", nonce.encode("ascii")), (b"cache-control", b"no-store")]
    response.headers = [*kept, *given]
    response.of_stored_state = False


def _cors(scope: Scope, sharing: CorsPolicy) -> tuple[tuple[bytes, bytes], ...]:
    origin = requested = None
    for name, value in scope["headers"]:
        if name == b"origin":
            origin = value
        elif name == b"access-control-request-headers":
            requested = value
    preflight = scope["method"] == "OPTIONS"
    return cors_headers(origin, requested, preflight=preflight, sharing=sharing)
