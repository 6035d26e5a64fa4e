"""Makes a validated request of an ASGI scope, the first step of every request."""

from typing import Protocol

import msgspec

from podstead.core.conditional import UNCONDITIONAL, Conditions
from podstead.core.errors import BadRequest, TargetTooLong
from podstead.core.header_fields import parse_prefer, type_links
from podstead.core.identifiers import MAX_TARGET_BYTES, ResourcePath, parse_path
from podstead.core.identity import Identity
from podstead.core.operation import QUERY, Operation, RequestBody
from podstead.web.asgi import HeaderFields, Receive, Scope
from podstead.web.authority import Authorities
from podstead.web.body import AsgiBody, BodyPace, SignedContent
from podstead.web.codes import WebCodes
from podstead.web.content_coding import if_none_match

METHODS_WITH_BODY = frozenset({"PUT", "POST", "PATCH", QUERY})
MAX_UNUSED_BYTES = 64 * 1024
"""The maximum size of the content of a request whose method does not use any."""
_CONDITIONAL = frozenset(
    {b"if-match", b"if-none-match", b"if-modified-since", b"if-unmodified-since"}
)


class PresentedCertificate(Protocol):
    """A client certificate as received, whose key the sender has proven to have."""

    def der(self) -> bytes:
        """The certificate in DER. Raises NotAuthenticated if it cannot be decoded."""


class ClientCertificates(Protocol):
    """Finds the client certificates of requests."""

    def of(
        self, scope: Scope, fields: HeaderFields, *, peer: str, host: str
    ) -> PresentedCertificate | None:
        """The certificate that may authenticate the request; ``None`` without any. ``host`` is the
        requested host."""


class Request(msgspec.Struct, frozen=True):
    """One HTTP request: its target in canonical form, its header fields, and its body, not yet
    received."""

    method: str
    path: ResourcePath
    fields: HeaderFields
    body: RequestBody
    client_address: str
    host: str
    """The requested host, which is one of the server's own."""
    raw_path: bytes
    """The target as sent, without its query. Proofs refer to it."""
    query: bytes
    certificate: PresentedCertificate | None = None
    """The client certificate, if there is one that may authenticate the request."""

    @property
    def is_of_server(self) -> bool:
        """Whether this is ``OPTIONS *``, which is about the server. Its path is then the root."""
        return _is_of_server(self.method, self.raw_path)


async def read_request(
    scope: Scope,
    receive: Receive,
    *,
    body_pace: BodyPace,
    authorities: Authorities,
    certificates: ClientCertificates | None = None,
) -> Request:
    """Read the request line and the header fields, but not the body. Without ``certificates``,
    client certificates are ignored.

    Raises TargetTooLong, BadRequest (malformed target or fields) and Misdirected.
    """
    raw_path: bytes = scope["raw_path"]
    query: bytes = scope["query_string"]
    if len(raw_path) + len(query) + (1 if query else 0) > MAX_TARGET_BYTES:
        raise TargetTooLong(WebCodes.TARGET_TOO_LONG, number=MAX_TARGET_BYTES)
    fields = HeaderFields(scope["headers"])
    peer: str = (scope.get("client") or ("",))[0]
    host = authorities.check_host(fields, peer=peer)
    method: str = scope["method"]
    body = AsgiBody(receive, fields, pace=body_pace)
    if body.size_bytes is None and scope["http_version"] == "2" and method in METHODS_WITH_BODY:
        await body.look_ahead()
    certificate = None
    if certificates is not None:
        certificate = certificates.of(scope, fields, peer=peer, host=host)
    return Request(
        method=method,
        path=parse_path(b"/" if _is_of_server(method, raw_path) else path_of(raw_path)),
        fields=fields,
        body=body,
        client_address=authorities.client_address(fields, peer=peer),
        host=host,
        raw_path=raw_path,
        query=query,
        certificate=certificate,
    )


def _is_of_server(method: str, raw_path: bytes) -> bool:
    """Whether the request is about the server (RFC 9112 section 3.2.4: asterisk-form)."""
    return method == "OPTIONS" and raw_path == b"*"


def path_of(raw_path: bytes) -> bytes:
    """The path of a target in any form (RFC 9112 section 3.2), without query and fragment. Raises
    BadRequest."""
    if raw_path.startswith(b"/"):
        return raw_path.partition(b"?")[0].partition(b"#")[0]
    _, separator, rest = raw_path.partition(b"://")
    if not separator:
        raise BadRequest("The request target must be an absolute path")
    return b"/" + rest.partition(b"?")[0].partition(b"#")[0].partition(b"/")[2]


def operation_of(request: Request, agent: Identity | None) -> Operation:
    """The operation on a resource that is requested; ``agent`` is the authenticated identity."""
    fields = request.fields
    get = fields.get
    link = get(b"link")
    return Operation(
        method=request.method,
        target=request.path,
        body=request.body,
        conditions=_conditions(fields),
        accept=get(b"accept"),
        content_type=get(b"content-type"),
        range=get(b"range"),
        if_range=get(b"if-range"),
        slug=fields.get_raw(b"slug"),
        link_types=() if link is None else type_links([link]),
        origin=get(b"origin"),
        preferences=parse_prefer(get(b"prefer")),
        whole_tree=request.method == "DELETE" and _is_deep(get(b"depth")),
        signed_url=bool(fields.proofs) or (agent is not None and agent.method.is_bound_to_url),
    )


def _is_deep(depth: str | None) -> bool:
    """Whether a DELETE asks for everything below a container (RFC 4918 section 9.6.1).

    It must ask: without the header, a container that is not empty is not deleted (C-18).
    """
    return depth is not None and depth.lower() == "infinity"


def _conditions(fields: HeaderFields) -> Conditions:
    if not fields.has_any(_CONDITIONAL):
        return UNCONDITIONAL
    conditions = Conditions(
        if_match=fields.get(b"if-match"),
        if_none_match=if_none_match(fields),
        if_modified_since=fields.get(b"if-modified-since"),
        if_unmodified_since=fields.get(b"if-unmodified-since"),
    )
    return conditions if conditions.any_given else UNCONDITIONAL


async def with_checked_content(request: Request, digest: bytes) -> Request:
    """The request, with its content checked as it is received.

    If the method does not use content, nothing would receive it, so it is checked at once. Raises
    NotAuthenticated, and the errors of bodies.
    """
    field = next(iter(request.fields.authorization), b"").lstrip(b" \t")
    scheme = field.partition(b" ")[0].decode("latin-1").capitalize()
    content = SignedContent(request.body, digest=digest, scheme=scheme)
    if request.method not in METHODS_WITH_BODY:
        await content.read(limit_bytes=MAX_UNUSED_BYTES)
    return msgspec.structs.replace(request, body=content)
