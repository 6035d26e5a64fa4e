"""Writes and reads requests for access as notifications in an inbox, and keeps the answers to
people who have no inbox here.

A request is a notification as in Linked Data Notifications (W3C Recommendation): an ``as:Offer``
(Activity Vocabulary) of an ``acl:Authorization`` that the owner may or may not accept. The
authorization states in the terms of Web Access Control who would have which modes on which
resource. The owner's answer is an ``as:Accept`` or an ``as:Reject`` of that offer, in the inbox of
the person who asked.

An answer to a person without an inbox here is a record, which they see when they come back to the
pages. Meanwhile it is sent once to the inbox that the document of their WebID states; an answer
that has arrived there is removed. The owner waits for none of this. As for every request to
another server, only public addresses are contacted, within limits of size and time.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

import msgspec

from podstead.authn.web_ids import ProfileSources, UnusableDocument, WebIdDocuments
from podstead.core import background, date_times, errors, identity, media_types, vocab
from podstead.core.identifiers import ResourcePath, canonical_url
from podstead.rdf.graph import Graph, Iri, Literal, Object, Subject
from podstead.storage.record_store import RecordKind, RecordStore, Versioned, secret_key
from podstead.wac.acl import agent_name, iris_of, modes_of
from podstead.wac.modes import Modes

MAX_MESSAGE_CHARS: Final = 500


@dataclass(frozen=True, slots=True)
class Offer:
    """A request for modes on a resource. ``actor`` is the IRI that the request gives; nothing
    proves that the request comes from there."""

    actor: str
    resource_url: str
    modes: Modes
    message: str = ""
    published: str | None = None


@dataclass(frozen=True, slots=True)
class OfferAnswer:
    """The answer to an offer. ``actor`` is the IRI that the answer gives; nothing proves it."""

    actor: str
    offer: Offer
    allowed: bool
    published: str | None = None


def write_offer(offer: Offer, *, at_ms: int) -> bytes:
    """The notification, as JSON-LD."""
    return _written({"id": "", **_described(offer)}, at_ms)


def write_answer(answer: OfferAnswer, *, at_ms: int) -> bytes:
    """The notification, as JSON-LD."""
    return _written(
        {
            "id": "",
            "type": "Accept" if answer.allowed else "Reject",
            "actor": answer.actor,
            "object": _described(answer.offer),
        },
        at_ms,
    )


def _written(activity: dict[str, object], at_ms: int) -> bytes:
    notification = {
        "@context": [vocab.AS_CONTEXT, {"acl": vocab.ACL}],
        **activity,
        "published": datetime.fromtimestamp(at_ms // 1000, UTC).isoformat(),
    }
    return json.dumps(notification, ensure_ascii=False).encode()


def _described(offer: Offer) -> dict[str, object]:
    described: dict[str, object] = {
        "type": "Offer",
        "actor": offer.actor,
        "object": {
            "type": "acl:Authorization",
            "acl:agent": {"id": offer.actor},
            "acl:accessTo": {"id": offer.resource_url},
            "acl:mode": [{"id": iri} for iri in iris_of(offer.modes)],
        },
    }
    if offer.message:
        described["content"] = offer.message[:MAX_MESSAGE_CHARS]
    return described


def read_offer(graph: Graph) -> Offer | None:
    """The request for access that a document states; ``None`` if it states none or something
    else, such as access for somebody other than the actor."""
    if _answers(graph):
        return None  # the offer in an answer was made before
    for subject in graph.subjects(Iri(vocab.RDF_TYPE), Iri(vocab.AS_OFFER)):
        offer = _offer_of(graph, subject)
        if offer is not None:
            return offer
    return None


def read_answer(graph: Graph) -> OfferAnswer | None:
    """The answer to a request for access that a document states; ``None`` if it states none."""
    for subject, allowed in _answers(graph):
        actor = _iri(graph, subject, vocab.AS_ACTOR)
        for about in graph.objects(subject, Iri(vocab.AS_OBJECT)):
            offer = None if isinstance(about, Literal) else _offer_of(graph, about)
            if offer is not None and actor is not None:
                published = _text(graph, subject, vocab.AS_PUBLISHED)[:40] or None
                return OfferAnswer(agent_name(actor), offer, allowed, published)
    return None


def _answers(graph: Graph) -> list[tuple[Subject, bool]]:
    """The answers that a document states, and whether each one allows what was asked for."""
    return [
        (subject, allowed)
        for kind, allowed in ((vocab.AS_ACCEPT, True), (vocab.AS_REJECT, False))
        for subject in graph.subjects(Iri(vocab.RDF_TYPE), Iri(kind))
    ]


def _offer_of(graph: Graph, subject: Subject) -> Offer | None:
    actor = _iri(graph, subject, vocab.AS_ACTOR)
    for authorization in graph.objects(subject, Iri(vocab.AS_OBJECT)):
        offer = _offer(graph, subject, authorization, actor)
        if offer is not None:
            return offer
    return None


def _offer(graph: Graph, subject: Subject, about: Object, actor: str | None) -> Offer | None:
    if isinstance(about, Literal) or actor is None:
        return None
    if Iri(vocab.ACL_AUTHORIZATION) not in graph.objects(about, Iri(vocab.RDF_TYPE)):
        return None
    resource = _iri(graph, about, vocab.ACL_ACCESS_TO)
    url = None if resource is None else canonical_url(resource)
    modes = modes_of(graph.iris(about, Iri(vocab.ACL_MODE)))
    if url is None or not modes or _iri(graph, about, vocab.ACL_AGENT) != actor:
        return None
    return Offer(
        agent_name(actor),
        url,
        modes,
        _text(graph, subject, vocab.AS_CONTENT)[:MAX_MESSAGE_CHARS],
        _text(graph, subject, vocab.AS_PUBLISHED)[:40] or None,
    )


def _iri(graph: Graph, subject: Subject, predicate: str) -> str | None:
    """The one IRI that is the predicate's object."""
    objects = graph.objects(subject, Iri(predicate))
    if len(objects) != 1 or not isinstance(objects[0], Iri):
        return None
    return objects[0].value


def _text(graph: Graph, subject: Subject, predicate: str) -> str:
    return next(iter(graph.literals(subject, Iri(predicate))), "")


logger = logging.getLogger("podstead.resources.sharing")

LIFETIME_DAYS: Final = 90
MAX_OF_STORAGE: Final = 200
"""How many answers about one storage are stored, the newest."""
MAX_SHOWN: Final = 100
ANSWERS_PER_HOUR: Final = 60
"""How many answers of one owner are sent to other servers in an hour."""
TASK: Final = "podstead-answer"
MAX_SENDING: Final = 32
"""How many are being sent at a time; the others are only stored."""
_HOUR_S: Final = 3600
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


class AnswerSender(Protocol):
    """Sends notifications to other servers."""

    async def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        """The status of the response. Raises OutboundError."""


class StoredAnswers:
    """Keeps and sends answers."""

    def __init__(
        self, records: RecordStore, *, profiles: ProfileSources, sending: AnswerSender
    ) -> None:
        self._records = records
        self._inboxes: WebIdDocuments[tuple[str, ...]] = WebIdDocuments(
            profiles, extract=_inboxes, weigh=lambda found: sum(map(len, found))
        )
        self._sending = sending
        self._sending_tasks: set[asyncio.Task[None]] = set()

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
                    key,
                    stored,
                    owner=storage,
                    expires_ms=now_ms + LIFETIME_DAYS * date_times.DAY_MS,
                ),
                *(STORED_ANSWERS.drop(each.key) for each in by_age[:excess]),
            ]
        )
        if len(self._sending_tasks) < MAX_SENDING and await self._may_send(storage):
            task = asyncio.create_task(
                self._send(key, write_answer(answer, at_ms=now_ms)), name=TASK
            )
            self._sending_tasks.add(task)
            task.add_done_callback(self._sending_tasks.discard)

    async def of(self, person: identity.Identity) -> Sequence[Versioned[StoredAnswer]]:
        """The answers to a person, the newest first."""
        found: list[Versioned[StoredAnswer]] = []
        for name in {agent_name(each) for each in person.names()}:
            prefix = _prefix(name)
            listed = await STORED_ANSWERS.page(
                self._records.store, after=prefix, now_ms=self._records.now_ms(), limit=MAX_SHOWN
            )
            found += [each for each in listed if each.key.startswith(prefix)]
        return sorted(found, key=lambda each: each.value.at_ms, reverse=True)

    async def forget(self, person: identity.Identity, key: str) -> None:
        """Remove an answer to the person. Raises NotFound."""
        if not key.startswith(tuple(_prefix(agent_name(each)) for each in person.names())):
            raise errors.NotFound
        await self._records.commit([STORED_ANSWERS.drop(key)])

    async def sent(self) -> None:
        """Wait until no answer is being sent any more."""
        await asyncio.gather(*self._sending_tasks)

    async def close(self) -> None:
        """Stop sending; unsent answers stay stored."""
        await background.cancel_and_wait(self._sending_tasks)

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
            status = await self._sending.post(
                inboxes[0], content, {"Content-Type": media_types.JSON_LD}
            )
            if 200 <= status < 300:
                await self._records.try_commit([STORED_ANSWERS.drop(key)], [stored.unchanged])
        except (UnusableDocument, errors.ServerTrouble) as error:
            logger.debug("An answer to a request for access was not sent: %s", error)


def _prefix(person: str) -> str:
    return secret_key(person)[:_KEY_CHARACTERS]


def _inboxes(graph: Graph, name: str) -> tuple[str, ...]:
    """The inboxes that the document of a WebID states; the URLs are checked when they are used."""
    return tuple(sorted(graph.iris(Iri(name), Iri(vocab.LDP_INBOX))))
