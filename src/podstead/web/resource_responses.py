"""Makes the responses to operations on resources: their status, header fields and content.

Fields that depend only on the path and kind of the resource are computed once.
"""

from collections.abc import Sequence
from email.utils import formatdate
from functools import lru_cache

from podstead.core import errors, identifiers, vocab
from podstead.core.caches import memoize_short_first_keys
from podstead.core.clock import Clock
from podstead.core.header_fields import Return, link_header
from podstead.core.media_types import RDF_TYPES, essence
from podstead.core.operation import QUERY
from podstead.notifications.channel_types import stream_of_resource
from podstead.resources.entity_tags import last_modified_ms, stored_tag
from podstead.resources.outcome import Outcome, Representation, ResourceRequest, Result
from podstead.storage.records import ResourceKind
from podstead.wac.acl import SUPPORTED as SUPPORTED_CONDITIONS
from podstead.wac.modes import Mode
from podstead.web import response as web_response
from podstead.web.asgi import Headers

_VARY_OF_CONTAINERS = web_response.VARY + b", Prefer"


_STATUSES = {
    Result.REPRESENTED: 200,
    Result.PARTIAL: 206,
    Result.NOT_MODIFIED: 304,
    Result.CREATED: 201,
    Result.CHANGED: 204,
    Result.DELETED: 204,
    Result.MOVED: 301,
}

_SAFE = frozenset({"GET", "HEAD"})
_READ = frozenset({Result.REPRESENTED, Result.PARTIAL, Result.NOT_MODIFIED})
_WRITTEN = frozenset({Result.CREATED, Result.CHANGED, Result.DELETED})

_RDF_INPUT = b"text/turtle, application/ld+json, application/n-triples"
_PATCH_INPUT = b"text/n3, application/sparql-update"
_ANY_INPUT = b"text/turtle, application/ld+json, */*"
# User content must never act with this origin's rights: it gets an opaque one.
SANDBOX = (
    b"content-security-policy",
    b"sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts",
)


_NOT_OF_S3 = frozenset({b"cache-control", b"etag", b"last-modified"})
"""What does not hold for a redirect, and differs in the response of S3."""

_ACCEPTS_RANGES = (b"accept-ranges", b"bytes")
_ACCEPTS_NO_RANGES = (b"accept-ranges", b"none")


DocumentLink = tuple[str, str]
"""A link of all documents: what its address begins with before the path of the document, and its
relation type."""


class Responder:
    """Creates responses; ``base_url`` is the prefix of absolute links."""

    def __init__(
        self,
        *,
        base_url: str,
        clock: Clock,
        further: Sequence[web_response.HeaderField] = (),
        document_links: Sequence[DocumentLink] = (),
        accept_query: bytes = b"",
    ) -> None:
        """``further`` are header fields of all responses to reads, and ``document_links`` links of
        all documents. ``accept_query`` lists the media types of queries to containers."""
        self._clock = clock
        self._base_url = base_url
        self._further = tuple(further)
        self._document_links = tuple(document_links)
        self._accept_query = accept_query

    def outcome(self, outcome: Outcome, request: ResourceRequest) -> web_response.Response:
        """The response to an operation that was carried out."""
        headers = self._facts(outcome, request)
        if outcome.representation is None:
            response = web_response.empty_response(_STATUSES[outcome.result], headers)
        else:
            response = _represented(outcome, outcome.representation, request, headers)
        if outcome.result in _READ:
            response.of_stored_state = request.cacheable
            response.valid_until_s = request.valid_until_s
            if identifiers.is_container(request.operation.target):
                response.vary = _VARY_OF_CONTAINERS
        return response

    def redirect(
        self, outcome: Outcome, request: ResourceRequest, address: str
    ) -> web_response.Response:
        """The response that sends a reader to where the content is, for this time only."""
        headers = [field for field in self._facts(outcome, request) if field[0] not in _NOT_OF_S3]
        return web_response.empty_response(
            307, [*headers, (b"location", address.encode("ascii")), web_response.NO_STORE]
        )

    def methods(self, target: identifiers.ResourcePath) -> tuple[str, ...]:
        """The methods that the target supports."""
        return supported_methods(target, self._accept_query)

    def refusal_facts(self, request: ResourceRequest, error: errors.RequestRefused) -> Headers:
        """The headers of the response to a refused operation. They depend on the URL and on the
        access of the agent (W-50, P-30), so they reveal nothing about the target. The entity tag is
        only sent after a failed precondition, which is evaluated after the access decision."""
        target = request.operation.target
        headers: Headers = [(b"link", _links(target, None, self._base_url))]
        denied = isinstance(error, errors.NotAuthenticated | errors.AccessDenied)
        if denied or request.operation.method in _SAFE:  # A-9, W-50
            _add_wac_allow(headers, request)
        if request.operation.method in _SAFE:
            headers += self._further
        if isinstance(error, errors.UnsupportedMediaType | errors.NotFound):
            # They say whether and how a client can create a missing resource.
            headers += _method_headers(target, self._accept_query)
        if isinstance(error, errors.PreconditionFailed) and request.existing is not None:
            headers.append((b"etag", stored_tag(request.existing).encode("ascii")))
        return headers

    def _facts(self, outcome: Outcome, request: ResourceRequest) -> Headers:
        target = outcome.location or request.operation.target
        headers: Headers = []
        if outcome.etag is not None:
            headers.append((b"etag", outcome.etag.encode("ascii")))
        if outcome.metadata is not None:
            # Never later than the response (RFC 9110 section 8.8.2.1), as by another node's clock.
            modified_ms = min(last_modified_ms(outcome.metadata), self._clock.now_ms())
            headers.append((b"last-modified", http_date(modified_ms // 1000)))
        if outcome.location is not None:
            headers.append((b"location", f"{self._base_url}{outcome.location}".encode("ascii")))
        if outcome.result is not Result.DELETED:
            kind = outcome.metadata.kind if outcome.metadata else None
            rdf = (
                outcome.metadata is not None and essence(outcome.metadata.content_type) in RDF_TYPES
            )
            further = self._document_links if kind is ResourceKind.DOCUMENT else ()
            links = _links(
                target, kind, self._base_url, rdf=rdf, owner=outcome.owner, further=further
            )
            headers.append((b"link", links))
        if request.ignored_conditions and outcome.result in _WRITTEN:
            ignored = [
                (type_ or vocab.ACL_CONDITION_CLASS, vocab.ACCESS_IGNORED_CONDITION)
                for type_ in request.ignored_conditions
            ]
            headers.append((b"link", link_header(ignored).encode("ascii")))
        if outcome.result in _READ:
            headers += _method_headers(request.operation.target, self._accept_query)
        if request.operation.method in _SAFE:
            headers.append((b"cache-control", _cache_control(request)))
            headers += self._further
            _add_wac_allow(headers, request)
        if outcome.nearly_full is not None and _controls(request):
            level = outcome.nearly_full
            value = f"used={level.used_bytes}, limit={level.limit_bytes}"
            headers.append((b"storage-quota", value.encode("ascii")))
        applied = _preference_applied(outcome, request)
        if applied is not None:
            headers.append((b"preference-applied", applied))
        return headers


def options_response(
    target: identifiers.ResourcePath,
    *,
    base_url: str,
    further: Sequence[web_response.HeaderField],
    accept_query: bytes,
) -> web_response.Response:
    """The response to OPTIONS of a resource, which depends on the URL alone (P-13), with
    ``further`` header fields."""
    headers: Headers = [*_method_headers(target, accept_query), *further]
    root = identifiers.storage_root(target)
    links = _condition_links(target)
    if root is not None:
        links.append(
            (base_url + identifiers.storage_description_of(root), vocab.SOLID_STORAGE_DESCRIPTION)
        )
    if links:
        headers.append((b"link", link_header(links).encode("ascii")))
    return web_response.empty_response(204, headers)


def _represented(
    outcome: Outcome, representation: Representation, request: ResourceRequest, headers: Headers
) -> web_response.Response:
    headers += (SANDBOX, _ACCEPTS_RANGES if representation.verbatim else _ACCEPTS_NO_RANGES)
    return web_response.content_response(
        representation.body,
        representation.content_type,
        method=request.operation.method,
        status=_STATUSES[outcome.result],
        headers=headers,
        size_bytes=representation.size_bytes,
        byte_range=outcome.byte_range,
    )


def _controls(request: ResourceRequest) -> bool:
    """Whether the sender may know how full the storage is: whoever only appends to an inbox need
    not."""
    return request.grant is not None and request.grant.allows(Mode.CONTROL)


def _preference_applied(outcome: Outcome, request: ResourceRequest) -> bytes | None:
    """The preference that the response honors (RFC 7240 section 3), ``None`` without any.

    Responses to writes never have content, so they honor ``return=minimal``.
    """
    operation = request.operation
    preferences = operation.preferences
    if outcome.result in _WRITTEN:
        return b"return=minimal" if preferences.returned is Return.MINIMAL else None
    if (
        outcome.result in _READ
        and identifiers.is_container(operation.target)
        and preferences.choose_parts
    ):
        return b"return=representation"
    return None


def _add_wac_allow(headers: Headers, request: ResourceRequest) -> None:
    if request.grant is not None:
        headers.append((b"wac-allow", request.grant.wac_allow.encode("ascii")))


def _cache_control(request: ResourceRequest) -> bytes:
    if request.grant is not None and request.grant.public_may_read:
        return b"no-cache"
    return b"private, no-cache"


@lru_cache(maxsize=1024)
def http_date(unix_s: int) -> bytes:
    """An HTTP date (RFC 9110 section 5.6.7)."""
    return formatdate(unix_s, usegmt=True).encode("ascii")


@memoize_short_first_keys
def _links(
    target: identifiers.ResourcePath,
    kind: ResourceKind | None,
    base_url: str,
    *,
    rdf: bool = False,
    owner: str | None = None,
    further: tuple[DocumentLink, ...] = (),
) -> bytes:
    """The Link header on one line (P-29 to P-35, N-22); without ``kind``, only what follows from
    the URL."""
    subject = identifiers.subject_of(target)
    links = [(base_url + identifiers.acl_of(subject), "acl")]
    auxiliary = identifiers.auxiliary_kind(target)
    if auxiliary is identifiers.Auxiliary.DESCRIPTION:
        links.append((base_url + subject, "describes"))
    elif auxiliary is None:
        links.append((base_url + identifiers.description_of(subject), "describedby"))
    links += _condition_links(target)
    root = identifiers.storage_root(target)
    if root is not None:
        links.append(
            (base_url + identifiers.storage_description_of(root), vocab.SOLID_STORAGE_DESCRIPTION)
        )
        stream = base_url + stream_of_resource(base_url + target)
        links.append((stream, vocab.SOLID_UPDATES_VIA_STREAMING_HTTP))
    if owner is not None:  # P-33; clients use either
        links += [(owner, vocab.SOLID_OWNER), (owner, vocab.SOLID_POD_OWNER)]
    links += [(base_url + address + target, relation) for address, relation in further]
    types = _type_links(tuple(_types(target, kind, rdf=rdf)))
    return f"{link_header(links)}, {types}".encode("ascii")


def _condition_links(target: identifiers.ResourcePath) -> list[tuple[str, str]]:
    """The types of conditions that are supported, in responses about an ACL (W-9)."""
    if identifiers.auxiliary_kind(target) is not identifiers.Auxiliary.ACL:
        return []
    return [(type_, vocab.ACL_CONDITION) for type_ in SUPPORTED_CONDITIONS]


@lru_cache(maxsize=16)
def _type_links(types: tuple[str, ...]) -> str:
    """The links to the types, of which there are only a few combinations."""
    return link_header([(iri, "type") for iri in types])


def _types(target: identifiers.ResourcePath, kind: ResourceKind | None, *, rdf: bool) -> list[str]:
    types = [vocab.LDP_RESOURCE]
    if identifiers.is_container(target):
        types += [vocab.LDP_CONTAINER, vocab.LDP_BASIC_CONTAINER]
        if identifiers.storage_root(target) == target:
            types.append(vocab.PIM_STORAGE_CLASS)
    elif identifiers.auxiliary_kind(target) is not None:
        types.append(vocab.LDP_RDF_SOURCE)  # also if none is stored: an empty description is RDF
    elif kind is not None:
        types.append(vocab.LDP_RDF_SOURCE if rdf else vocab.LDP_NON_RDF_SOURCE)
    return types


def supported_methods(target: identifiers.ResourcePath, accept_query: bytes) -> tuple[str, ...]:
    """The methods of a resource; those that can have members take queries, if anything does."""
    allowed = identifiers.allowed_methods(target)
    return (*allowed, QUERY) if accept_query and "POST" in allowed else allowed


@memoize_short_first_keys
def _method_headers(
    target: identifiers.ResourcePath, accept_query: bytes
) -> tuple[tuple[bytes, bytes], ...]:
    allowed = supported_methods(target, accept_query)
    headers: Headers = [(b"allow", ", ".join(allowed).encode("ascii"))]
    if "PATCH" in allowed:
        headers.append((b"accept-patch", _PATCH_INPUT))
    if "POST" in allowed:
        headers.append((b"accept-post", _ANY_INPUT))
    if "PUT" in allowed:
        headers.append(
            (b"accept-put", _RDF_INPUT if identifiers.accepts_only_rdf(target) else _ANY_INPUT)
        )
    if QUERY in allowed:
        headers.append((b"accept-query", accept_query))
    return tuple(headers)
