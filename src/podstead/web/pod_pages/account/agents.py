"""What are agents called on the pages?"""

from __future__ import annotations

from podstead.core.identity import Identity
from podstead.web.pages.texts import _

_NOSTR = "did:nostr:"
_SHOWN_KEY_CHARACTERS = 12


def agent_text(iri: str | None, *, viewer: Identity | None, base_url: str) -> str:
    """A short name: “You”, the name of a pod of this server, or the WebID without its scheme."""
    if iri is None:
        return _("Somebody who was not signed in")
    if viewer is not None and iri in viewer.names():
        return _("You")
    local = iri.removeprefix(f"{base_url}/")
    if local != iri and local.endswith("/#me") and local.count("/") == 1:
        return local.removesuffix("/#me")
    if iri.startswith(_NOSTR):
        return f"{_NOSTR}{iri[len(_NOSTR) :][:_SHOWN_KEY_CHARACTERS]}…"
    return iri.partition("://")[2] or iri
