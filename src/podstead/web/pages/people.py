"""What pages call people and applications, and the faces beside their names.

Names that people choose for themselves are not used, so that nobody can be called like somebody
else: it is the name of the pod on this server, what the reader's own contacts say, or an address.
"""

from contextvars import ContextVar
from typing import Final
from urllib.parse import quote, urlsplit
from zlib import crc32

from podstead.wac.acl import NOSTR_DID, local_path
from podstead.web.pages.addresses import FACE, shown_name

PASSWORD_CLIENT: Final = "credentials_client"  # noqa: S105 - a name
"""The client in tokens that a program gets for the password of a person: no application."""
HUES: Final = 6
"""How many colours faces have, by the classes ``hue-0`` and so on."""
_SHOWN_KEY_CHARACTERS: Final = 12
_USUAL_ENDS: Final = ("/profile/card#me", "/#me")


def short_name(iri: str, base_url: str) -> str:
    """The name of the pod for its owner; else the address without what most addresses of people
    have in common."""
    document, _separator, fragment = iri.partition("#")
    path = local_path(document, base_url)
    if path is not None and fragment == "me" and path.count("/") == 2 and path.endswith("/"):
        return shown_name(path)
    if iri.startswith(NOSTR_DID):
        shown = iri[: len(NOSTR_DID) + _SHOWN_KEY_CHARACTERS]
        return iri if shown == iri else f"{shown}…"
    address = iri.partition("://")[2] or iri
    for end in _USUAL_ENDS:
        short = address.removesuffix(end)
        # What has no dot could be the name of a pod here.
        if short != address and "." in short.partition("/")[0]:
            return short
    return address


def application_name(client_id: str | None) -> str:
    """The host of an application, for one whose name is not known; empty for none."""
    if not client_id or client_id == PASSWORD_CLIENT:
        return ""
    try:
        return urlsplit(client_id).hostname or client_id
    except ValueError:
        return client_id


def initials(name: str) -> str:
    """One or two letters for the face of somebody."""
    words = [word for word in name.replace(".", " ").replace("-", " ").split() if word[0].isalnum()]
    if not words:
        return "?"
    return "".join(word[0] for word in (words[0], *words[1:2])).upper()


_base_url_of_faces: ContextVar[str] = ContextVar("base_url_of_faces", default="")


def use_faces_of(base_url: str) -> None:
    """Show photos of people of the server with this base URL on the page of the current request;
    none for an empty one."""
    _base_url_of_faces.set(base_url)


def face_url(iri: str) -> str:
    """The address of the photo of somebody of this server, which is transparent if there is none;
    empty for others, and on pages that show no photos."""
    base_url = _base_url_of_faces.get()
    return f"{FACE}?of={quote(iri, safe='')}" if base_url and iri.startswith(f"{base_url}/") else ""


def hue(text: str) -> int:
    """The number of the colour of a face; the same each time."""
    return crc32(text.encode()) % HUES
