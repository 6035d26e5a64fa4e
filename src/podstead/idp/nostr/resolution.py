"""Whose key do others say this is? DID documents of Nostr keys, from chosen resolvers (A-127).

Only the operator can have anybody asked: whoever is asked learns who signs in here, and when. A
resolver names WebIDs; whether one of them is meant is for the profiles of this server to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from podstead.core.bounded_cache import BoundedCache
from podstead.core.clock import Clock
from podstead.core.errors import OutboundError
from podstead.core.strict_json import Json, parse_object
from podstead.idp.nostr.links import did_of

POSITIVE_S: Final = 300
NEGATIVE_S: Final = 60
MOST_NAMES: Final = 16
"""How many WebIDs a document may name; one that names more names none."""
MOST_NAME_CHARACTERS: Final = 2048
KEPT_CHARACTERS: Final = 1024 * 1024
_OVERHEAD: Final = 256
"""What an answer takes besides the WebIDs, roughly."""

WebIds = frozenset[str]
_NONE: Final[WebIds] = frozenset()


class DidDocuments(Protocol):
    """Reads DID documents of other servers through the guarded way out."""

    async def fetch_did_document(self, url: str) -> bytes:
        """Raises OutboundError."""


@dataclass(frozen=True, slots=True)
class _Answer:
    web_ids: WebIds
    read_ms: int

    def counts(self, now_ms: int) -> bool:
        fresh_s = POSITIVE_S if self.web_ids else NEGATIVE_S
        return now_ms < self.read_ms + fresh_s * 1000


class DidResolution:
    """Asks the resolvers, and remembers for minutes what they say."""

    def __init__(self, resolvers: Sequence[str], *, documents: DidDocuments, clock: Clock) -> None:
        """``resolvers`` are URLs without a slash at the end, asked in this order."""
        self._resolvers = resolvers
        self._documents = documents
        self._clock = clock
        self._kept = BoundedCache[str, _Answer](KEPT_CHARACTERS)

    async def web_ids_of(self, public_key: str) -> WebIds:
        """The WebIDs that the first resolver which knows the key names for it. A resolver that
        cannot be asked, or says something else, names none."""
        known = self._kept.get(public_key)
        if known is not None and known.counts(self._clock.now_ms()):
            return known.web_ids
        web_ids = await self._ask(public_key)
        answer = _Answer(web_ids, self._clock.now_ms())
        self._kept.put(public_key, answer, weight=_OVERHEAD + sum(map(len, web_ids)))
        return web_ids

    async def _ask(self, public_key: str) -> WebIds:
        for resolver in self._resolvers:
            try:
                content = await self._documents.fetch_did_document(f"{resolver}/{public_key}.json")
            except OutboundError:
                continue
            web_ids = named_web_ids(content, did=did_of(public_key))
            if web_ids:
                return web_ids
        return _NONE


def named_web_ids(content: bytes, *, did: str) -> WebIds:
    """The WebIDs that the DID document of ``did`` names; none if it is not one."""
    try:
        document = parse_object(content)
    except ValueError:
        return _NONE
    if document.get("id") != did:
        return _NONE
    named = frozenset(_also_known_as(document)) or frozenset(_profile(document))
    return named if len(named) <= MOST_NAMES else _NONE


def _also_known_as(document: Json) -> Iterator[str]:
    names = document.get("alsoKnownAs")
    return (each for each in names if _is_web_id(each)) if isinstance(names, list) else iter(())


def _profile(document: Json) -> Iterator[str]:
    """As resolvers without ``alsoKnownAs`` say it."""
    profile = document.get("profile")
    web_id = profile.get("webid") if isinstance(profile, dict) else None
    if isinstance(web_id, str) and _is_web_id(web_id):
        yield web_id


def _is_web_id(name: object) -> bool:
    return (
        isinstance(name, str)
        and len(name) <= MOST_NAME_CHARACTERS
        and name.startswith(("https://", "http://"))
    )
