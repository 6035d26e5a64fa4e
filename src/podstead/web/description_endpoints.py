"""Generates the descriptions of the server and its storages, and sends its icon."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from types import MappingProxyType
from typing import Final

import msgspec

from podstead.core.conditional import Conditions
from podstead.core.errors import NotAcceptable, NotFound
from podstead.core.identifiers import storage_root
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD, RDF_TYPES, choose, prefers_html
from podstead.core.vocab import PIM, PIM_STORAGE_CLASS, SOLID, SOLID_NOTIFICATION_GATEWAY
from podstead.notifications import channel_documents
from podstead.notifications.channel_types import GATEWAY, ChannelType
from podstead.pods.template import server_description, storage_description
from podstead.rdf.codecs import Document, serialize
from podstead.rdf.graph import Dataset, Graph, Iri
from podstead.storage.protocol import PodRegistry, ResourceStore
from podstead.web.browsers import see_other
from podstead.web.content_coding import if_none_match
from podstead.web.registration import INVITED, Registration
from podstead.web.request import Request
from podstead.web.response import Response, conditional_response, json_content_response
from podstead.web.routes import Access, Endpoint, route

# Descriptions of the server, its storages and its services are read-only and public, so there is no
# access decision and no resource to look up. A graph goes in; its representation comes out, with an
# entity tag for conditional requests (P-23, P-24).

_TAG_BYTES = 16


@dataclass(frozen=True, slots=True)
class GeneratedDocument:
    """The content of a document, and the media types that it is available in.

    ``json_ld`` is the document in JSON-LD, if clients also read it as JSON; it has the same content
    as ``graph``. ``offered`` lists its media types, beginning with the default.
    """

    graph: Graph
    json_ld: Mapping[str, object] | None = None
    prefixes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    offered: Sequence[str] = RDF_TYPES

    def choose(self, accept: str | None) -> str:
        """The media type that an Accept header prefers. Raises NotAcceptable."""
        media_type = choose(accept, self.offered)
        if media_type is None:
            raise NotAcceptable(f"This resource is available as {', '.join(self.offered)}")
        return media_type

    def content(self, media_type: str) -> bytes:
        """The document in one of its media types."""
        if media_type == JSON_LD and self.json_ld is not None:
            return msgspec.json.encode(self.json_ld)
        return serialize(Document(Dataset(self.graph), self.prefixes), media_type)


def generated_document(
    request: Request,
    agent: Identity | None,
    document: GeneratedDocument,
    *,
    allow: str = "OPTIONS, GET, HEAD",
) -> Response:
    """The response to a GET or HEAD of a document; ``allow`` lists the methods of its URL.

    The document must depend on the stored state and the configuration alone. There is no
    Last-Modified; the entity tag is a hash of the content. Raises NotAcceptable and
    PreconditionFailed.
    """
    fields = request.fields
    media_type = document.choose(fields.get(b"accept"))
    content = document.content(media_type)
    response = conditional_response(
        content,
        media_type,
        method=request.method,
        etag=f'"{blake2b(content, digest_size=_TAG_BYTES).hexdigest()}"',
        conditions=Conditions(
            if_match=fields.get(b"if-match"), if_none_match=if_none_match(fields)
        ),
        headers=[(b"cache-control", b"no-cache"), (b"allow", allow.encode("ascii"))],
    )
    response.of_stored_state = True
    response.valid_until_s = agent.holds_until_s if agent else None
    return response


MAX_AGE_S: Final = 300


def public_document(
    request: Request,
    content: bytes,
    *,
    age_s: int = MAX_AGE_S,
    media_type: str = "application/json",
) -> Response:
    """The response to a GET or HEAD of a document that anyone may cache for ``age_s``."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    return conditional_response(
        content,
        media_type,
        method=request.method,
        etag=tag,
        conditions=Conditions(if_none_match=if_none_match(request.fields)),
        headers=[(b"cache-control", f"public, max-age={age_s}".encode("ascii"))],
    )


# ``GET /.well-known/solid``: what a program can find out that knows only the host (P-36).
#
# Anyone may read the description of the server. The names of pods are private to their owners:
# unless the operator has decided to publish the storages, the document reveals neither how many
# there are nor whether there are any.

MAX_LISTED_STORAGES = 1000
"""The maximum number of storages listed, in the order of their names. The document is created in
memory, and clients read it as a whole."""


class ServerDescriptionEndpoint:
    """Describes the server."""

    def __init__(self, *, base_url: str, named_storages: PodRegistry | None) -> None:
        """``named_storages`` lists the storages to publish; with ``None``, none is published."""
        self._base_url = base_url
        self._named_storages = named_storages

    @route("/.well-known/solid", "GET", "HEAD", access=Access.PUBLIC)
    async def get(self, request: Request, agent: Identity | None) -> Response:
        urls = [self._base_url + root for root in await self._roots()]
        graph = server_description(
            f"{self._base_url}/",
            storage_urls=urls,
            notification_gateway=self._base_url + GATEWAY,
        )
        return generated_document(request, agent, GeneratedDocument(graph))

    async def _roots(self) -> list[str]:
        if self._named_storages is None:
            return []
        pods = await self._named_storages.list_pods(limit=MAX_LISTED_STORAGES)
        return [pod.root for pod in pods]


# ``GET /<pod>/.well-known/solid``: what a storage is and can do (P-32, W-43, N-1).
#
# Anyone may read it, because clients look for it before they have any access. It is generated, not
# stored. Its JSON-LD contains its context, so that reading it takes no further request. Its members
# have the names that the Solid Notifications Protocol gives to those of a description resource
# (N-2, N-3).

_TERMS: Final[channel_documents.Json] = {
    "notificationGateway": {"@id": SOLID_NOTIFICATION_GATEWAY, "@type": "@id"},
}
_PREFIXES: Final = {"pim": PIM, "solid": SOLID, **channel_documents.PREFIXES}


StorageLink = tuple[str, str, str]
"""A link in the descriptions of storages: a name for its property in JSON-LD, the IRI of the
property, and what the address begins with before the path of the root."""


class StorageDescriptionEndpoint:
    """Describes storages."""

    def __init__(
        self,
        *,
        base_url: str,
        store: ResourceStore,
        channel_types: Sequence[ChannelType],
        links: Sequence[StorageLink] = (),
    ) -> None:
        """``channel_types`` are the types that clients can subscribe to, and ``links`` what else a
        storage has."""
        self._base_url = base_url
        self._store = store
        self._channel_types = channel_types
        self._links = tuple(links)
        self._link_terms = {name: {"@id": iri, "@type": "@id"} for name, iri, _ in links}

    async def get(self, request: Request, agent: Identity | None) -> Response:
        """Raises NotFound if there is no storage, NotAcceptable and PreconditionFailed."""
        root = storage_root(request.path)
        if root is None or (await self._store.read_metadata([root]))[root] is None:
            raise NotFound("There is no storage at this URL")
        return generated_document(request, agent, self._document(self._base_url + root))

    def _document(self, root_url: str) -> GeneratedDocument:
        base_url, types = self._base_url, self._channel_types
        gateway = base_url + GATEWAY
        services = channel_documents.services_of_storage(
            types, root_url=root_url, base_url=base_url
        )
        json_ld: channel_documents.Json = {
            "@context": {**channel_documents.DESCRIPTION_TERMS, **_TERMS, **self._link_terms},
            "id": root_url,
            "type": PIM_STORAGE_CLASS,
            "notificationGateway": gateway,
            "subscription": channel_documents.services_json(types, base_url=base_url),
        }
        root_path = root_url.removeprefix(base_url)
        for name, _, address in self._links:
            json_ld[name] = base_url + address + root_path
        linked = Graph(
            (Iri(root_url), Iri(property_), Iri(base_url + address + root_path))
            for _, property_, address in self._links
        )
        graph = storage_description(root_url, notification_gateway=gateway) | services | linked
        return GeneratedDocument(graph, json_ld, _PREFIXES)


# ``GET /``: what this server is, as a page for people and as JSON for programs.
#
# The root of the server is neither a storage nor a container. Pods are below it and are not listed.


@dataclass(frozen=True, slots=True, kw_only=True)
class RootEndpoint:
    """Describes the server itself.

    ``provider`` is the URL of the identity provider, if it has pages for signing in, and
    ``provider_hosts`` are its hosts if it has an origin of its own. ``page`` is for people.
    """

    base_url: str
    provider: str | None
    provider_hosts: frozenset[str]
    registration: Registration
    page: Endpoint

    @route("/", "GET", "HEAD", access=Access.PUBLIC)
    async def get(self, request: Request, agent: Identity | None) -> Response:
        """The first page, or JSON that says where to create a pod and where to sign in."""
        if prefers_html(request.fields.get(b"accept")):
            if request.host in self.provider_hosts:
                return see_other(f"{self.base_url}/")  # the pages of pods are there
            return await self.page(request, agent)
        facts = {"server": "Podstead"}
        if not self.registration.is_closed:
            facts["createPod"] = f"{self.base_url}/.pods"
        if self.registration.by_invitation:
            facts["registration"] = INVITED
        if self.provider is not None:
            facts["signIn"] = f"{self.provider}/idp/login"
        operator = self.registration.about
        about = {
            "operator": operator.name,
            "contact": operator.contact,
            "terms": operator.terms_url,
        }
        facts |= {name: text for name, text in about.items() if text}
        return json_content_response(facts, method=request.method)


_MAX_AGE_S: Final = 86_400


@cache
def favicon() -> bytes:
    """The icon, read from the package once."""
    return files("podstead.web").joinpath("static", "favicon.ico").read_bytes()


class FaviconEndpoint:
    """Serves the icon."""

    @route("/favicon.ico", "GET", "HEAD", access=Access.PUBLIC)
    async def get(self, request: Request, _: Identity | None) -> Response:
        return public_document(request, favicon(), age_s=_MAX_AGE_S, media_type="image/x-icon")
