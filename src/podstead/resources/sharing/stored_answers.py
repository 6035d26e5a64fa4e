"""Keeps answers to requests for access of people who have no inbox here.

Such an answer is a record, which the person sees when they come back to the pages here. Meanwhile
it is sent once to the inbox that the document of their WebID states (Linked Data Notifications); an
answer that has arrived there is not kept. The owner waits for none of this. As for every request to
another server, only public addresses are contacted, within limits of size and time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from podstead.authn.web_id_documents import (
    ProfileSources,
    UnusableDocument,
    WebIdDocuments,
)
from podstead.core import vocab
from podstead.core.errors import NotFound, ServerTrouble
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.core.media_types import JSON_LD
from podstead.rdf.graph import Graph
from podstead.rdf.terms import Iri
from podstead.resources.sharing.offers import OfferAnswer, write_answer
from podstead.storage.record_store import RecordKind, RecordStore, Versioned, secret_key
from podstead.wac.iris import agent_name

logger = logging.getLogger("podstead.resources.sharing")

DAYS_KEPT: Final = 90
MAX_OF_STORAGE: Final = 200
"""How many answers about one storage are kept, the newest."""
MAX_SHOWN: Final = 100
ANSWERS_PER_HOUR: Final = 60
"""How many answers of one owner are sent to other servers in an hour."""
TASK: Final = "podstead-answer"
MAX_ON_THE_WAY: Final = 32
"""How many are being sent at a time; the others are only kept."""
_HOUR_S: Final = 3600
_DAY_MS: Final = 86_400_000
_KEY_CHARACTERS: Final = 32


class StoredAnswer(msgspec.Struct, frozen=True):
    """An answer of an owner. ``person`` is the one who asked."""

    person: str
    actor: str
    resource: str
    modes: tuple[str, ...]
    allowed: bool
    at_ms: int


STORED_ANSWERS: Final = RecordKind("access-answer", StoredAnswer)
"""The key begins with the hash of the person, so that their answers are listed together."""


class AnswerSending(Protocol):
    """Sends notifications to other servers."""

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        """The status of the response. Raises OutboundError."""


class StoredAnswers:
    """Keeps and sends answers."""

    def __init__(
        self, records: RecordStore, *, profiles: ProfileSources, sending: AnswerSending
    ) -> None:
        self._records = records
        self._inboxes: WebIdDocuments[tuple[str, ...]] = WebIdDocuments(
            profiles, extract=_inboxes, weigh=lambda found: sum(map(len, found))
        )
        self._sending = sending
        self._on_the_way: set[asyncio.Task[None]] = set()

    async def keep(
        self, answer: OfferAnswer, resource: ResourcePath, *, storage: ResourcePath
    ) -> None:
        """Keep an answer about a resource of a storage, and begin to send it."""
        now_ms = self._records.now_ms()
        stored = StoredAnswer(
            person=answer.offer.actor,
            actor=answer.actor,
            resource=resource,
            modes=tuple(sorted(answer.offer.modes)),
            allowed=answer.allowed,
            at_ms=now_ms,
        )
        key = _prefix(stored.person) + secret_key(resource)[:_KEY_CHARACTERS]
        others = await self._records.of_owner(STORED_ANSWERS, storage)
        by_age = sorted((each for each in others if each.key != key), key=lambda e: e.value.at_ms)
        excess = max(0, len(by_age) - MAX_OF_STORAGE + 1)
        await self._records.commit(
            [
                STORED_ANSWERS.put(
                    key, stored, owner=storage, expires_ms=now_ms + DAYS_KEPT * _DAY_MS
                ),
                *(STORED_ANSWERS.drop(each.key) for each in by_age[:excess]),
            ]
        )
        if len(self._on_the_way) < MAX_ON_THE_WAY and await self._may_send(storage):
            task = asyncio.create_task(
                self._send(key, write_answer(answer, at_ms=now_ms)), name=TASK
            )
            self._on_the_way.add(task)
            task.add_done_callback(self._on_the_way.discard)

    async def of(self, person: Identity) -> Sequence[Versioned[StoredAnswer]]:
        """The answers to a person, the newest first."""
        found: list[Versioned[StoredAnswer]] = []
        for name in {agent_name(each) for each in person.names()}:
            prefix = _prefix(name)
            listed = await STORED_ANSWERS.page(
                self._records.store, after=prefix, now_ms=self._records.now_ms(), limit=MAX_SHOWN
            )
            found += [each for each in listed if each.key.startswith(prefix)]
        return sorted(found, key=lambda each: each.value.at_ms, reverse=True)

    async def forget(self, person: Identity, key: str) -> None:
        """Remove an answer to the person. Raises NotFound."""
        if not key.startswith(tuple(_prefix(agent_name(each)) for each in person.names())):
            raise NotFound
        await self._records.commit([STORED_ANSWERS.drop(key)])

    async def sent(self) -> None:
        """Wait until no answer is being sent any more."""
        await asyncio.gather(*self._on_the_way)

    async def close(self) -> None:
        """Stop sending; unsent answers stay stored."""
        for task in self._on_the_way:
            task.cancel()
        await asyncio.gather(*self._on_the_way, return_exceptions=True)

    async def _may_send(self, storage: ResourcePath) -> bool:
        key = f"access-answer:{storage}"
        wait_s = await self._records.take(key, capacity=ANSWERS_PER_HOUR, period_s=_HOUR_S)
        return wait_s is None

    async def _send(self, key: str, content: bytes) -> None:
        """Send an answer, and remove it once it has arrived."""
        try:
            stored = await self._records.read(STORED_ANSWERS, key)
            if stored is None or self._inboxes.is_local(stored.value.person):
                return
            inboxes = await self._inboxes.fetched(stored.value.person)
            if not inboxes:
                return
            status = await self._sending.post(inboxes[0], content, {"Content-Type": JSON_LD})
            if 200 <= status < 300:
                await self._records.try_commit([STORED_ANSWERS.drop(key)], [stored.unchanged])
        except (UnusableDocument, ServerTrouble) as error:
            logger.debug("An answer to a request for access was not sent: %s", error)


def _prefix(person: str) -> str:
    return secret_key(person)[:_KEY_CHARACTERS]


def _inboxes(graph: Graph, name: str) -> tuple[str, ...]:
    """The inboxes that the document of a WebID states; the URLs are checked when they are used."""
    found = graph.objects(Iri(name), Iri(vocab.LDP_INBOX))
    return tuple(sorted(each.value for each in found if isinstance(each, Iri)))
