"""Writes and reads requests for access as notifications in an inbox.

Pure. A request is a notification as in Linked Data Notifications (W3C Recommendation): an
``as:Offer`` (Activity Vocabulary) of an ``acl:Authorization`` that the owner may or may not accept.
The authorization states in the terms of Web Access Control who would have which modes on which
resource. The owner's answer is an ``as:Accept`` or an ``as:Reject`` of that offer, in the inbox of
the person who asked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from podstead.core import vocab
from podstead.core.identifiers import canonical_url
from podstead.rdf.graph import Graph, Iri, Literal, Object, Subject
from podstead.wac.iris import agent_name
from podstead.wac.modes import Mode, Modes, with_entailed

MAX_MESSAGE_CHARS: Final = 500

_MODE_IRIS: Final = {
    Mode.READ: vocab.ACL_READ,
    Mode.APPEND: vocab.ACL_APPEND,
    Mode.WRITE: vocab.ACL_WRITE,
    Mode.CONTROL: vocab.ACL_CONTROL,
}
_MODES: Final = {iri: mode for mode, iri in _MODE_IRIS.items()}


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
    modes = [
        {"id": iri}
        for mode, iri in _MODE_IRIS.items()
        if mode in offer.modes and not (mode is Mode.APPEND and Mode.WRITE in offer.modes)
    ]
    described: dict[str, object] = {
        "type": "Offer",
        "actor": offer.actor,
        "object": {
            "type": "acl:Authorization",
            "acl:agent": {"id": offer.actor},
            "acl:accessTo": {"id": offer.resource_url},
            "acl:mode": modes,
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
        if isinstance(authorization, Iri) or _is_node(authorization):
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
    modes = with_entailed(
        _MODES[term.value]
        for term in graph.objects(about, Iri(vocab.ACL_MODE))
        if isinstance(term, Iri) and term.value in _MODES
    )
    if url is None or not modes or _iri(graph, about, vocab.ACL_AGENT) != actor:
        return None
    return Offer(
        agent_name(actor),
        url,
        modes,
        _text(graph, subject, vocab.AS_CONTENT)[:MAX_MESSAGE_CHARS],
        _text(graph, subject, vocab.AS_PUBLISHED)[:40] or None,
    )


def _is_node(term: Object) -> bool:
    return not isinstance(term, Literal)


def _iri(graph: Graph, subject: Subject, predicate: str) -> str | None:
    """The one IRI that is the predicate's object."""
    objects = graph.objects(subject, Iri(predicate))
    if len(objects) != 1 or not isinstance(objects[0], Iri):
        return None
    return objects[0].value


def _text(graph: Graph, subject: Subject, predicate: str) -> str:
    for term in graph.objects(subject, Iri(predicate)):
        if isinstance(term, Literal):
            return term.value
    return ""
