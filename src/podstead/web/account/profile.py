"""``/.pages/profile``: what the person's profile says, to change it."""

import dataclasses
import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from podstead.core.errors import AccessDenied, BadRequest, NotAuthenticated, NotFound
from podstead.core.header_fields import Preferences, Return
from podstead.core.identifiers import ResourcePath, acl_of, parse_path, storage_root
from podstead.core.media_types import N3, TURTLE
from podstead.core.operation import InMemoryBody
from podstead.core.vocab import LDP_PREFER_CONTAINMENT
from podstead.rdf import identity_statements
from podstead.rdf.graph import EMPTY_GRAPH, Graph, RdfParser
from podstead.resources.service import ResourceService
from podstead.web.codes import WebCodes
from podstead.web.files.documents import ContentPreviews
from podstead.web.forms import read_parts
from podstead.web.pages import addresses
from podstead.web.pages.addresses import PROFILE, files_url, raw_url
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.links import Links
from podstead.web.pages.rendering import refusal_text
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import route

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

    details: identity_statements.ProfileDetails
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

    async def photo(self, page: PageRequest, web_id: str) -> ResourcePath | None:
        """The photo of a person whose pod is here, as the profile names it to the person who asks;
        ``None`` if it is not in that pod, which nobody else can fill. Raises RequestRefused,
        ServerTrouble."""
        places = self.places(web_id)
        path = self.path_of((await self.details(page, web_id)).picture)
        return path if path is not None and path.startswith(places.storage) else None

    async def details(self, page: PageRequest, web_id: str) -> identity_statements.ProfileDetails:
        """The details of a person whose pod is here, as far as the person who asks may read them.
        Raises RequestRefused if that is nothing at all, ServerTrouble."""
        places = self.places(web_id)
        public = await self._graph(page, places.document)
        details = identity_statements.read_details(public, web_id)
        further = self.base_url + places.private_document
        if identity_statements.names_further_document(public, web_id, further):
            with suppress(AccessDenied, NotAuthenticated):
                private = await self._graph(page, places.private_document)
                details = identity_statements.read_details(private, web_id).or_else(details)
        return details

    async def read(self, page: PageRequest, places: ProfilePlaces) -> Profile:
        """The profile. Raises RequestRefused, ServerTrouble."""
        documents = await self._read(page, places)
        return self._profile(places, documents)

    async def save(
        self,
        page: PageRequest,
        places: ProfilePlaces,
        wanted: identity_statements.ProfileDetails,
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
            steps.append(
                (places.private_document, documents.private, identity_statements.ProfileDetails())
            )
        else:
            stand_in = identity_statements.ProfileDetails(name=places.stand_in_name)
            steps = [
                (places.private_document, documents.private, wanted),
                (places.document, documents.public, stand_in),
            ]
        for document, graph, details in steps:
            names_private = [(self.base_url + places.private_document, not is_public)]
            further = names_private if document == places.document else ()
            change = identity_statements.difference(graph, places.web_id, details, further=further)
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
        public = identity_statements.read_details(documents.public, web_id)
        if not identity_statements.names_further_document(documents.public, web_id, private_url):
            return Profile(public, is_public=True)
        return Profile(
            identity_statements.read_details(documents.private, web_id).or_else(public),
            is_public=False,
        )

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
        if representation is None:
            return EMPTY_GRAPH
        content = await representation.read()
        return await self.parse(content, representation.content_type, self.base_url + path)


MAX_NAME_CHARACTERS: Final = 200
MAX_NOTE_CHARACTERS: Final = 5_000
MAX_LINKS: Final = 20
MAX_PICTURE_BYTES: Final = 8 * 1024 * 1024
_MAX_LINK_CHARACTERS: Final = 2_000
_NOT_IN_IRIS: Final = frozenset('<>"{}|^`\\')
_SIGNATURES: Final = (
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"GIF8", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"ftypavif", 4, "image/avif"),
)

add_flash_messages(
    Tone.DONE,
    profile_saved=N_("Your profile is saved."),
    picture_saved=N_("Your picture is saved."),
    picture_removed=N_("Your profile shows no picture any more."),
)
add_flash_messages(
    Tone.PROBLEM,
    no_picture=N_("Choose a picture: a JPEG, PNG, WebP, GIF or AVIF file of at most 8 MB."),
)


@dataclass(frozen=True, slots=True)
class TypedProfile:
    """The form as it was typed, with what is wrong with its fields."""

    name: str
    note: str
    links: str
    is_public: bool
    errors: dict[str, str]

    @property
    def details(self) -> identity_statements.ProfileDetails:
        """The details without the picture."""
        return identity_statements.ProfileDetails(
            self.name, "", self.note, tuple(typed_links(self.links))
        )


@dataclass(frozen=True, slots=True)
class ProfilePage:
    """Shows the profile and changes it."""

    site: Site
    profiles: Profiles
    previews: ContentPreviews

    @route(addresses.PROFILE, "GET")
    async def get(self, page: PageRequest) -> Response:
        person = page.signed_in()
        try:
            places = self.profiles.places(person.web_id)
        except ExternalProfile:
            return self.site.page(page, "account/profile_elsewhere.html")
        profile = await self.profiles.read(page, places)
        details = profile.details
        typed = TypedProfile(
            details.name, details.note, "\n".join(details.links), profile.is_public, {}
        )
        return self._page(page, places, profile, typed)

    @route(addresses.PROFILE, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Save the form. Raises NotAuthenticated, WrongFormToken, RequestRefused, ServerTrouble."""
        sent = await page.form()
        places = self.profiles.places(page.signed_in().web_id)
        typed = read_typed(
            name=sent.text("name"),
            note=sent.text("note"),
            links=sent.text("links"),
            is_public=sent.text("public") == "yes",
        )
        profile = await self.profiles.read(page, places)
        if typed.errors:
            return self._page(page, places, profile, typed, status=400)
        details = typed.details
        wanted = identity_statements.ProfileDetails(
            details.name, profile.details.picture, details.note, details.links
        )
        saved = await self.profiles.save(
            page, places, wanted, is_public=typed.is_public, state=sent.text("state") or None
        )
        if not saved:
            return self._page(page, places, profile, typed, status=409)
        return self.site.see_other(PROFILE, FlashMessage("profile-saved"))

    @route(addresses.PROFILE + "/picture", "POST")
    async def post_picture(self, page: PageRequest) -> Response:
        """Upload a picture, or remove it. Raises NotAuthenticated, WrongFormToken, BodyTooLarge,
        RequestRefused, ServerTrouble."""
        person = page.signed_in()
        token, picture, removes = None, b"", False
        async for part in read_parts(page.request):
            if part.name == "csrf_token":
                token = await part.text()
            elif part.name == "remove":
                removes = True
            elif part.name == "picture":
                page.check_token(token)
                picture = await part.read(limit_bytes=MAX_PICTURE_BYTES)
        page.check_token(token)
        places = self.profiles.places(person.web_id)
        if removes:
            await self.profiles.remove_picture(page, places)
            return self.site.see_other(PROFILE, FlashMessage("picture-removed"))
        photo = await self.previews.portrait(picture, page) if picture_type(picture) else None
        media_type = picture_type(photo or b"")
        if photo is None or media_type is None:
            return self.site.see_other(PROFILE, FlashMessage("no-picture"))
        await self.profiles.add_picture(page, places, photo, media_type)
        return self.site.see_other(PROFILE, FlashMessage("picture-saved"))

    def _page(
        self,
        page: PageRequest,
        places: ProfilePlaces,
        profile: Profile,
        typed: TypedProfile,
        *,
        status: int = 200,
    ) -> Response:
        picture = self.profiles.path_of(profile.details.picture)
        links = self.profiles.links(places)
        return self.site.page(
            page,
            "account/profile.html",
            status=status,
            typed=typed,
            details=profile.details,
            links=[(each, links.of(each)) for each in profile.details.links],
            is_public=profile.is_public,
            state=profile.state,
            has_changed=status == 409,
            picture=None if picture is None else raw_url(picture),
            document=files_url(places.document),
            private_document=files_url(places.private_document),
            picture_types=",".join(PICTURE_TYPES),
            max_name=MAX_NAME_CHARACTERS,
            max_note=MAX_NOTE_CHARACTERS,
        )


def read_typed(*, name: str, note: str, links: str, is_public: bool) -> TypedProfile:
    """The form, with its errors by field."""
    name, note = " ".join(name.split()), note.replace("\r\n", "\n").strip()
    errors = {}
    if not name:
        errors["name"] = _("Enter a name.")
    elif len(name) > MAX_NAME_CHARACTERS:
        errors["name"] = _("This name is too long.")
    if len(note) > MAX_NOTE_CHARACTERS:
        errors["note"] = _("This text is too long.")
    try:
        typed_links(links)
    except BadRequest as error:
        errors["links"] = refusal_text(error)
    return TypedProfile(name, note, links, is_public, errors)


def typed_links(typed: str) -> list[str]:
    """The links, one in each line. Raises BadRequest."""
    links = [_link(line.strip()) for line in typed.splitlines() if line.strip()]
    if len(links) > MAX_LINKS:
        raise BadRequest(_("There can be at most %(number)s links.", number=MAX_LINKS))
    return list(dict.fromkeys(links))


def _link(typed: str) -> str:
    link = typed if "://" in typed else f"https://{typed}"
    try:
        parts = urlsplit(link)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_web = False
    is_plain = all(character > " " and character not in _NOT_IN_IRIS for character in link)
    if not is_web or not is_plain or len(link) > _MAX_LINK_CHARACTERS:
        raise BadRequest(_("This is not the address of a website: %(link)s", link=typed[:200]))
    return link


def picture_type(content: bytes) -> str | None:
    """The type of a picture, by how it begins; ``None`` for anything else."""
    for begins, at, media_type in _SIGNATURES:
        if content[at : at + len(begins)] == begins:
            return media_type
    return None
