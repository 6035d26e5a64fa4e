"""Where are the details of a person's profile, and how are they changed?

The document of a WebID has to stay readable by everyone: other servers read there who may act as
the WebID. Public details are in it. Details that are not public are in a document of their own,
which follows the access rules of its place in the pod, and the profile names it with
``rdfs:seeAlso``, so that clients of those who may read it find them. The name of the pod then
stands in for the person's name.

All changes are patches of what is concerned, through the same service and the same gate as
everything else.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from podstead.core.errors import BadRequest, NotFound
from podstead.core.header_fields import Preferences, Return
from podstead.core.identifiers import ResourcePath, acl_of, parse_path, storage_root
from podstead.core.media_types import N3, TURTLE
from podstead.core.operation import InMemoryBody
from podstead.core.vocab import LDP_PREFER_CONTAINMENT
from podstead.previews.links import Links
from podstead.rdf.graph import EMPTY_GRAPH, Graph, RdfParser
from podstead.rdf.identity_statements import (
    ProfileDetails,
    difference,
    names_further_document,
    read_details,
)
from podstead.resources.service import ResourceService
from podstead.storage.open_body import whole_body
from podstead.web.codes import WebCodes
from podstead.web.pages.request import PageRequest

_WITHOUT_MEMBERS: Final = Preferences(
    returned=Return.REPRESENTATION, omit=frozenset({LDP_PREFER_CONTAINMENT})
)
_HASH_CHARACTERS: Final = 12

PICTURE_TYPES: Final = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
    "image/avif": "avif",
}
"""The types of pictures that every browser shows, and the ends of their names."""

_PICTURE_RULES: Final = """\
@prefix acl: <http://www.w3.org/ns/auth/acl#>.
@prefix foaf: <http://xmlns.com/foaf/0.1/>.

<#owner> a acl:Authorization;
    acl:agent <{web_id}>;
    acl:accessTo <{name}>;
    acl:mode acl:Read, acl:Write, acl:Control.

<#public> a acl:Authorization;
    acl:agentClass foaf:Agent;
    acl:accessTo <{name}>;
    acl:mode acl:Read.
"""


class ExternalProfile(NotFound):
    """The person's WebID is not on this server."""


@dataclass(frozen=True, slots=True)
class ProfilePlaces:
    """Where the parts of a profile are."""

    web_id: str
    document: ResourcePath
    """The document of the WebID."""
    storage: ResourcePath

    @property
    def private_document(self) -> ResourcePath:
        """The document of the details that are not public."""
        return ResourcePath(f"{self.storage}profile/details.ttl")

    @property
    def pictures(self) -> str:
        """What the paths of uploaded pictures begin with."""
        return f"{self.storage}profile/picture-"

    @property
    def stand_in_name(self) -> str:
        """The public name of a person whose details are not public."""
        return self.storage.strip("/")


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile as it is now."""

    details: ProfileDetails
    is_public: bool

    @property
    def state(self) -> str:
        """Identifies the details, to notice that somebody else has changed them meanwhile."""
        described = repr((self.details, self.is_public)).encode()
        return hashlib.sha256(described).hexdigest()[:_HASH_CHARACTERS]


@dataclass(frozen=True, slots=True)
class _Documents:
    public: Graph
    private: Graph


@dataclass(frozen=True, slots=True)
class Profiles:
    """Reads and changes the profiles of people with a pod here, as these people."""

    resources: ResourceService
    parse: RdfParser
    base_url: str

    def places(self, web_id: str) -> ProfilePlaces:
        """Raises ExternalProfile."""
        url = web_id.partition("#")[0]
        if not url.startswith(f"{self.base_url}/"):
            raise ExternalProfile(WebCodes.OWN_PROFILE_ELSEWHERE)
        try:
            document = parse_path(url[len(self.base_url) :].encode("ascii"))
        except (BadRequest, UnicodeEncodeError) as error:
            raise ExternalProfile(WebCodes.WEB_ID_UNUSABLE) from error
        storage = storage_root(document)
        if storage is None:
            raise ExternalProfile(WebCodes.WEB_ID_IN_NO_POD)
        return ProfilePlaces(web_id, document, storage)

    def links(self, places: ProfilePlaces) -> Links:
        """Where links in the profile lead."""
        return Links(self.base_url, places.document)

    def path_of(self, url: str) -> ResourcePath | None:
        """The resource of this server with that URL; ``None`` for URLs elsewhere."""
        if not url.startswith(f"{self.base_url}/"):
            return None
        try:
            return parse_path(url[len(self.base_url) :].encode("ascii"))
        except (BadRequest, UnicodeEncodeError):
            return None

    async def read(self, page: PageRequest, places: ProfilePlaces) -> Profile:
        """The profile. Raises RequestRefused, ServerTrouble."""
        documents = await self._read(page, places)
        return self._profile(places, documents)

    async def save(
        self,
        page: PageRequest,
        places: ProfilePlaces,
        wanted: ProfileDetails,
        *,
        is_public: bool,
        state: str | None,
    ) -> bool:
        """Make these the details of the profile; false if they were changed since ``state``.

        What is to be private is stored privately before it is removed from the public document.
        Raises RequestRefused, ServerTrouble.
        """
        documents = await self._read(page, places)
        now = self._profile(places, documents)
        if state is not None and now.state != state:
            return False
        steps = [(places.document, documents.public, wanted)]
        if is_public:
            steps.append((places.private_document, documents.private, ProfileDetails()))
        else:
            stand_in = ProfileDetails(name=places.stand_in_name)
            steps = [
                (places.private_document, documents.private, wanted),
                (places.document, documents.public, stand_in),
            ]
        for document, graph, details in steps:
            names_private = [(self.base_url + places.private_document, not is_public)]
            further = names_private if document == places.document else ()
            change = difference(graph, places.web_id, details, further=further)
            if not change.is_empty:
                await self.resources.handle(
                    page.operation(
                        "PATCH", document, body=InMemoryBody(change.as_patch()), content_type=N3
                    )
                )
        for picture in {now.details.picture, wanted.picture}:
            shared = is_public and picture == wanted.picture
            await self._share_picture(page, places, picture, shared=shared)
        return True

    async def add_picture(
        self, page: PageRequest, places: ProfilePlaces, content: bytes, media_type: str
    ) -> None:
        """Store a picture and show it in the profile instead of the present one. Raises
        BadRequest for another type, RequestRefused, ServerTrouble."""
        ending = PICTURE_TYPES.get(media_type)
        if ending is None:
            raise BadRequest(WebCodes.PICTURE_TYPE)
        hashed = hashlib.sha256(content).hexdigest()[:_HASH_CHARACTERS]
        path = ResourcePath(f"{places.pictures}{hashed}.{ending}")
        profile = await self.read(page, places)
        await self.resources.handle(
            page.operation("PUT", path, body=InMemoryBody(content), content_type=media_type)
        )
        await self._show_picture(page, places, profile, self.base_url + path)

    async def remove_picture(self, page: PageRequest, places: ProfilePlaces) -> None:
        """Show no picture any more. Raises RequestRefused, ServerTrouble."""
        await self._show_picture(page, places, await self.read(page, places), "")

    async def _show_picture(
        self, page: PageRequest, places: ProfilePlaces, profile: Profile, picture: str
    ) -> None:
        details = dataclasses.replace(profile.details, picture=picture)
        await self.save(page, places, details, is_public=profile.is_public, state=None)
        former = self._own_picture(places, profile.details.picture)
        if former is not None and profile.details.picture != picture:
            with suppress(NotFound):
                await self.resources.handle(page.operation("DELETE", former))

    # --- parts --------------------------------------------------------------------------------

    def _profile(self, places: ProfilePlaces, documents: _Documents) -> Profile:
        web_id = places.web_id
        private_url = self.base_url + places.private_document
        public = read_details(documents.public, web_id)
        if not names_further_document(documents.public, web_id, private_url):
            return Profile(public, is_public=True)
        return Profile(read_details(documents.private, web_id).or_else(public), is_public=False)

    def _own_picture(self, places: ProfilePlaces, url: str) -> ResourcePath | None:
        """The path of a picture that was uploaded on the page of the profile."""
        path = self.path_of(url)
        return path if path is not None and path.startswith(places.pictures) else None

    async def _share_picture(
        self, page: PageRequest, places: ProfilePlaces, url: str, *, shared: bool
    ) -> None:
        """Let everyone see an uploaded picture, or only those who may see the folder."""
        path = self._own_picture(places, url)
        if path is None:
            return
        rules = acl_of(path)
        if not shared:
            with suppress(NotFound):
                await self.resources.handle(page.operation("DELETE", rules))
            return
        text = _PICTURE_RULES.format(web_id=places.web_id, name=self.base_url + path)
        body = InMemoryBody(text.encode())
        await self.resources.handle(page.operation("PUT", rules, body=body, content_type=TURTLE))

    async def _read(self, page: PageRequest, places: ProfilePlaces) -> _Documents:
        return _Documents(
            public=await self._graph(page, places.document),
            private=await self._graph(page, places.private_document),
        )

    async def _graph(self, page: PageRequest, path: ResourcePath) -> Graph:
        """What a document states; nothing if there is none."""
        request = page.operation("GET", path, accept=TURTLE)
        request.operation = replace(request.operation, preferences=_WITHOUT_MEMBERS)
        try:
            outcome = await self.resources.handle(request)
        except NotFound:
            return EMPTY_GRAPH
        representation = outcome.representation
        if representation is None or representation.body is None:
            return EMPTY_GRAPH
        body = representation.body
        if isinstance(body, AsyncIterator):
            content = b"".join([piece async for piece in body])
        else:
            content = body if isinstance(body, bytes) else await whole_body(body)
        return await self.parse(content, representation.content_type, self.base_url + path)
