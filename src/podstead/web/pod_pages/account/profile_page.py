"""``/.pages/profile``: what the person's profile says, to change it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from podstead.core.errors import BadRequest
from podstead.rdf.identity_statements import ProfileDetails
from podstead.web.forms import read_parts
from podstead.web.pages import addresses
from podstead.web.pages.addresses import PROFILE, files_url, raw_url
from podstead.web.pages.cookies import Notice, Tone, add_notices
from podstead.web.pages.rendering import refusal_text
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.pod_pages.account.profiles import (
    PICTURE_TYPES,
    ExternalProfile,
    Profile,
    ProfilePlaces,
    Profiles,
)
from podstead.web.response import Response
from podstead.web.routes import route

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

add_notices(
    Tone.DONE,
    profile_saved=N_("Your profile is saved."),
    picture_saved=N_("Your picture is saved."),
    picture_removed=N_("Your profile shows no picture any more."),
)
add_notices(
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
    def details(self) -> ProfileDetails:
        """The details without the picture."""
        return ProfileDetails(self.name, "", self.note, tuple(typed_links(self.links)))


@dataclass(frozen=True, slots=True)
class ProfilePage:
    """Shows the profile and changes it."""

    site: Site
    profiles: Profiles

    @route(addresses.PROFILE, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, ServerTrouble."""
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
        wanted = ProfileDetails(details.name, profile.details.picture, details.note, details.links)
        saved = await self.profiles.save(
            page, places, wanted, is_public=typed.is_public, state=sent.text("state") or None
        )
        if not saved:
            return self._page(page, places, profile, typed, status=409)
        return self.site.see_other(PROFILE, Notice("profile-saved"))

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
            return self.site.see_other(PROFILE, Notice("picture-removed"))
        media_type = picture_type(picture)
        if media_type is None:
            return self.site.see_other(PROFILE, Notice("no-picture"))
        await self.profiles.add_picture(page, places, picture, media_type)
        return self.site.see_other(PROFILE, Notice("picture-saved"))

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
