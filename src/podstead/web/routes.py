"""Maps paths to the endpoints that handle them, and says who may call these.

Service routes are matched by exact path; nothing is exempt from authorization by a prefix (A-13).
Every other path is that of a resource, and resources have one gate (``wac.gate``).
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from inspect import getmembers, isfunction
from typing import Any, Final, Protocol, TypeVar

from podstead.core.caches import memoize_short_keys
from podstead.core.errors import MethodNotAllowed, NotFound
from podstead.core.identifiers import ResourcePath, storage_description_of, storage_root
from podstead.core.identity import Identity
from podstead.pods.names import RESERVED_NAMES
from podstead.web.cors import CorsPolicy
from podstead.web.request import Request
from podstead.web.response import HeaderField, Response
from podstead.web.websocket import WebSocket

_SEGMENT = re.compile(r"\{[a-z_]+\}")
REST: Final = "/{path...}"
"""Ends the path of a route that matches every path below its first two segments."""
_DESCRIPTION = "storage description"
_DESCRIPTION_SUFFIX = storage_description_of(ResourcePath("/"))
"""What the path of every storage's description ends in; nearly all paths are told apart by it."""

Endpoint = Callable[[Request, Identity | None], Awaitable[Response]]
SocketEndpoint = Callable[[WebSocket, Request, Identity | None], Awaitable[None]]
"""Serves one WebSocket to its end. An error before the socket is accepted becomes a response."""


class ClaimedRequest(Protocol):
    """A request to the path of a resource that is not about the resource: a feature answers it."""

    @property
    def label(self) -> str:
        """What metrics call such requests."""

    @property
    def sequence(self) -> ResourcePath | None:
        """The container that a sequence of requests is about, such as those of one transfer: a
        signed event is valid in all of them, and may be sent as a password. ``None`` if credentials
        have no further use."""

    async def handle(self, request: Request, agent: Identity | None) -> Response:
        """Raises RequestRefused and ServerTrouble."""


Claim = Callable[[str, ResourcePath, bytes], ClaimedRequest | None]
"""Claims a request to the path of a resource, from its method, its path and its query; ``None`` if
the request is about the resource."""


class Access(Enum):
    """Who may call a route. Every route states it."""

    PUBLIC = "anyone; the endpoint limits what a request can do"
    OWN = "the endpoint checks credentials of its own, such as the cookie of a session"


@dataclass(frozen=True, slots=True)
class Route:
    """One path of a service, its methods, and who may call them.

    A segment of the path such as ``{uid}`` matches any one segment. A path of two segments, of
    which the first is reserved, and ``/{path...}`` matches every path that begins with the two; the
    endpoint finds the rest, with its escapes, by :func:`rest_of_path`. ``socket`` serves the
    WebSockets that are opened at the path. ``options`` are header fields of the response to
    OPTIONS. ``name`` stands for the path in metrics if the path is that of one request.
    """

    path: ResourcePath
    endpoints: Mapping[str, Endpoint]
    access: Access
    sharing: CorsPolicy = CorsPolicy.REFLECTED
    socket: SocketEndpoint | None = None
    options: tuple[HeaderField, ...] = ()
    name: str = ""

    @property
    def label(self) -> str:
        """What metrics call the route; one of a fixed number of texts."""
        return self.name or self.path

    @property
    def methods(self) -> tuple[str, ...]:
        return ("OPTIONS", *self.endpoints)


Handler = TypeVar("Handler", bound=Callable[..., Any])
_DECLARED: Final = "declared_routes"


@dataclass(frozen=True, slots=True)
class DeclaredRoute:
    """A path, its handlers by method, and the options with which it was declared."""

    path: str
    handlers: dict[str, Any]
    options: dict[str, Any]


def route(path: str, *methods: str, **options: object) -> Callable[[Handler], Handler]:
    """Declare that a method of a class answers requests with these methods at the path. What the
    options may be depends on who makes a :class:`Route` of it: a guard, or :func:`plain_routes`."""

    def declare(handler: Handler) -> Handler:
        vars(handler).setdefault(_DECLARED, []).append((path, methods, options))
        return handler

    return declare


def declared_routes(*objects: object) -> Iterator[DeclaredRoute]:
    """What the methods of the objects declare, path by path: several may answer at one. The paths
    of an object with the attribute ``below`` are below that path."""
    found: dict[str, DeclaredRoute] = {}
    for each in objects:
        below = getattr(each, "below", "")
        declarations = _declarations(type(each))  # type: ignore[arg-type]  # classes are hashable
        for name, declared_path, methods, options in declarations:
            path = below + declared_path
            declared = found.setdefault(path, DeclaredRoute(path, {}, {}))
            declared.handlers.update(dict.fromkeys(methods, getattr(each, name)))
            declared.options.update(options)
    return iter(found.values())


@cache
def _declarations(kind: type) -> Sequence[tuple[str, str, Sequence[str], Mapping[str, Any]]]:
    """What the methods of a class declare: their names, with path, methods and options."""
    return [
        (name, *declaration)
        for name, function in getmembers(kind, isfunction)
        for declaration in vars(function).get(_DECLARED, ())
    ]


def plain_routes(*endpoints: object) -> tuple[Route, ...]:
    """The routes of endpoints that check by themselves who sends a request."""
    return tuple(
        Route(
            ResourcePath(each.path),
            each.handlers,
            each.options.get("access", Access.OWN),
            each.options.get("sharing", CorsPolicy.REFLECTED),
        )
        for each in declared_routes(*endpoints)
    )


class Routes:
    """All routes of one origin: services by their path, and resources for every other path."""

    def __init__(
        self,
        services: tuple[Route, ...],
        *,
        storage_description: Mapping[str, Endpoint] = {},
        resources: Endpoint | None = None,
    ) -> None:
        """``storage_description`` has the endpoints, by method, of the description of each storage,
        which anyone may read (W-43). Without ``resources`` there are only services."""
        self.services = services
        self._by_path = {route.path: route for route in services if "{" not in route.path}
        self._prefixes = {
            route.path.removesuffix(REST): route for route in services if route.path.endswith(REST)
        }
        patterns = [each for each in services if "{" in each.path and not each.path.endswith(REST)]
        patterns.sort(key=lambda route: route.path.count("{"))  # "a/{b}/c" before "a/{b}/{c}"
        self._patterns = tuple(
            (re.compile(_SEGMENT.sub("[^/]+", each.path)), each) for each in patterns
        )
        self.storage_description = storage_description
        self._resources = resources

    def endpoint(self, service: Route | None, path: ResourcePath, method: str) -> Endpoint:
        """The endpoint that handles a path, and the service that owns the path, if there is one.

        Raises NotFound below reserved names, and MethodNotAllowed for a method that the service
        does not have.
        """
        if service is None:
            if self._resources is None or is_reserved(path):
                raise NotFound
            return self._resources
        endpoint = service.endpoints.get(method)
        if endpoint is None:
            raise MethodNotAllowed(
                f"The methods of this URL are {', '.join(service.methods)}", allow=service.methods
            )
        return endpoint

    def service_methods(self, path: ResourcePath) -> tuple[str, ...] | None:
        """The methods of the path of a service, ``None`` for the path of a resource."""
        route = self.service(path)
        if route is not None:
            return route.methods
        return ("OPTIONS",) if self._resources is None or is_reserved(path) else None

    def service(self, path: ResourcePath) -> Route | None:
        """The service that owns a path. The description of a storage is one, in each storage."""
        if path.endswith(_DESCRIPTION_SUFFIX) and self.storage_description:
            root = storage_root(path)
            if root is not None and path == storage_description_of(root) and not is_reserved(path):
                return Route(path, self.storage_description, Access.PUBLIC, name=_DESCRIPTION)
        exact = self._by_path.get(path)
        if exact is not None or not is_reserved(path):
            return exact
        below = self._prefixes.get(_two_segments(path))
        if below is not None:
            return below
        return next((route for form, route in self._patterns if form.fullmatch(path)), None)


def is_of_service(path: ResourcePath) -> bool:
    """Whether no resource can have the path, or it is that of the description of a storage."""
    root = storage_root(path)
    return is_reserved(path) or (root is not None and path == storage_description_of(root))


def rest_of_path(path: ResourcePath) -> ResourcePath:
    """What follows the first two segments of the path of a request, as a path of its own: the rest
    that ``/{path...}`` stands for."""
    return ResourcePath(path[len(_two_segments(path)) :])


def _two_segments(path: ResourcePath) -> str:
    """The first two segments of a path that goes on behind them, and empty for any other."""
    end = path.find("/", path.find("/", 1) + 1)
    return path[:end] if end > 0 else ""


@memoize_short_keys
def is_reserved(path: ResourcePath) -> bool:
    """Whether no resource can have the path, because it is below a name that no pod may have or
    below the description of a storage."""
    first = path[1:].partition("/")[0]
    if first == "" or first.startswith(".") or first.casefold() in RESERVED_NAMES:
        return True
    root = storage_root(path)
    return root is not None and path.startswith(f"{storage_description_of(root)}/")
