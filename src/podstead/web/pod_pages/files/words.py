"""What kinds of content, degrees of openness and agents are called on the pages."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final
from urllib.parse import unquote, urlsplit

from podstead.previews.kinds import Kind
from podstead.wac.decision import Audience
from podstead.web.pages.texts import N_, _

_KINDS: Final = MappingProxyType(
    {
        Kind.FOLDER: N_("Folder"),
        Kind.LINKED_DATA: N_("Linked data"),
        Kind.IMAGE: N_("Picture"),
        Kind.VIDEO: N_("Video"),
        Kind.AUDIO: N_("Audio"),
        Kind.PDF: N_("PDF"),
        Kind.MARKDOWN: N_("Markdown"),
        Kind.TABLE: N_("Table"),
        Kind.SOURCE: N_("Source code"),
        Kind.TEXT: N_("Text"),
        Kind.ARCHIVE: N_("Archive"),
        Kind.OTHER: N_("File"),
    }
)
_REACHES: Final = MappingProxyType(
    {
        Audience.OWNER: N_("Only the owner"),
        Audience.PEOPLE: N_("Certain people"),
        Audience.SIGNED_IN: N_("Anyone signed in"),
        Audience.EVERYONE: N_("Everyone"),
    }
)
_MAX_CHARACTERS: Final = 60


def kind_name(kind: Kind) -> str:
    """The name of a kind of content."""
    return _(_KINDS[kind])


def reach_name(reach: Audience, *, owns: bool) -> str:
    """Who can see something; ``owns`` if the person who reads it is the owner."""
    return _("Only you") if owns and reach is Audience.OWNER else _(_REACHES[reach])


def shown_agent(web_id: str, *, own: str | None, base_url: str) -> str:
    """What an agent is called: the name of the pod on this server, the host elsewhere."""
    if web_id == own:
        return _("You")
    try:
        url = urlsplit(web_id)
    except ValueError:
        return web_id[:_MAX_CHARACTERS]
    first = unquote(url.path.strip("/").partition("/")[0])
    if web_id.startswith(f"{base_url}/") and first:
        return first[:_MAX_CHARACTERS]
    return (url.netloc or web_id)[:_MAX_CHARACTERS]
