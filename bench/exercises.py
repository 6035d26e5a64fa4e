"""What happens in one measured round, and what must hold before and after it?

An exercise prepares a site once, provides the load of a round (after checking that responses are
correct), and verifies the result afterwards. What it cannot verify makes the figure void. Rules:

- Reads: one response is checked before and after; during the round no response may have a status
  of 400 or more, and the bytes received must match the number of correct responses, up to one
  response for each connection. (Responses are not checked one by one: that would make the
  generator slower than the fastest server.)
- Writes: every status is counted, and only the expected one may occur. Afterwards every
  acknowledged write must be found: of the requests sent, at most those cut off unanswered at the
  end may be missing or broken.
- Patches (`patches`): only what is found afterwards is counted, and the rest is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urljoin, urlsplit

from bench.documents import Subject, card, listed
from bench.load import Load, Outcome
from bench.messages import (
    JSON_LD,
    PROOF,
    SEQUENCE,
    Answer,
    NotMeasurable,
    Request,
    WrongAnswer,
    sequence_text,
)
from bench.site import Site, Stored

# Enough that two writes of one resource are in flight together only by an extreme delay.
REPLACED: Final = 256
SAMPLE: Final = 20
# What a chunked answer may have over its body: framing as a factor, and its header section.
CHUNK_FRAMING: Final = 1.01
HEADER_SECTION_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Effect:
    """What a round of writes came to: answers, those of success, and writes found afterwards."""

    answered: int = 0
    acknowledged: int = 0
    present: int = 0

    def __add__(self, other: Effect) -> Effect:
        """Both rounds together."""
        return Effect(
            self.answered + other.answered,
            self.acknowledged + other.acknowledged,
            self.present + other.present,
        )

    @property
    def is_whole(self) -> bool:
        """Whether every write was accepted, and none was lost."""
        return self.answered == self.acknowledged <= self.present

    def __str__(self) -> str:
        """Say it for the report."""
        return (
            f"of {self.answered:,} writes {self.acknowledged:,} were acknowledged, "
            f"and {self.present:,} were found afterwards"
        )


_SUCCESS: Final = frozenset({200, 201, 204, 205})


def good_answers(outcome: Outcome) -> Effect:
    """What a round came to if every answer of success is believed, and no other is of account.

    Raises:
        WrongAnswer: a connection failed, or an answer took too long.
    """
    outcome.require_whole_connections()
    good = sum(outcome.statuses.get(status, 0) for status in _SUCCESS)
    return Effect(outcome.answered, good, good)


class Exercise(Protocol):
    """One kind of work. `label` names the round, so that each round writes to a fresh place."""

    def furnish(self, site: Site) -> None:
        """Store what the rounds need; called once for each site."""

    def load(self, site: Site, label: str) -> Load:
        """Return what to send in this round.

        Raises:
            WrongAnswer: the site is not in order.
            NotMeasurable: wrk cannot take its answers.
        """

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> Effect | None:
        """Raise WrongAnswer unless everything answered in the round was right.

        Returns what the figure is to be made of, `None` for all the answers.
        """


@dataclass(frozen=True, slots=True)
class Read:
    """GET of one subject. `conditional`: with its entity tag, to be answered by 304."""

    subject: Subject
    accept: str
    authorized: bool = False
    conditional: bool = False

    def furnish(self, site: Site) -> None:
        """Store the subject."""
        self.subject.furnish(site)

    def load(self, site: Site, label: str) -> Load:
        """The same request each time."""
        del label
        answer = self._judged(site)
        tag = answer.headers["etag"] if self.conditional else ""
        return Load([self._request(site, tag)])

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> None:
        """The answer is still right, and as many bytes came as so many right answers have."""
        del label
        outcome.require_no_errors()
        self._judged(site)
        answer = site.send(load.requests[0])
        if self.conditional:
            answer.require(304)
        require_bytes(answer, outcome)

    def _request(self, site: Site, tag: str) -> Request:
        headers = {"Accept": self.accept} | ({"If-None-Match": tag} if tag else {})
        return site.request("GET", self.subject.path, headers=headers, authorized=self.authorized)

    def _judged(self, site: Site) -> Answer:
        if self.authorized:
            site.get(self.subject.path, self.accept).require(401, 403)
        answer = site.send(self._request(site, "")).require(200)
        self.subject.judge(site, answer, self.accept)
        if self.conditional:
            tag = answer.headers.get("etag")
            if tag is None:
                raise WrongAnswer("no entity tag")
            unchanged = site.send(self._request(site, tag)).require(304)
            if unchanged.headers.get("content-length", "0") != "0":
                raise NotMeasurable("its 304 has a Content-Length, and wrk waits for that body")
        return answer


@dataclass(frozen=True, slots=True)
class ReadWithProofs:
    """GET of one subject by an application whose token is bound to its key (RFC 9449).

    Each request has a proof of its own, made before the round; a proof that was used must not
    open anything again. `proofs_per_s` is more than any server answers: where they end, the round
    does.
    """

    subject: Subject
    accept: str
    proofs_per_s: int = 8000
    seconds: int = 3

    def furnish(self, site: Site) -> None:
        """Store the subject."""
        self.subject.furnish(site)

    def load(self, site: Site, label: str) -> Load:
        """The same request each time, with another proof."""
        del label
        request = self._request(site)
        site.get(self.subject.path, self.accept).require(401, 403)
        self.subject.judge(site, site.send(self._proven(site, request)).require(200), self.accept)
        count = self.proofs_per_s * self.seconds
        proofs = [site.proof("GET", self.subject.path) for _ in range(count)]
        return Load([request], tally=True, proofs=proofs)

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> None:
        """Every answer was right, and a proof that was used is refused."""
        del label
        require_statuses(outcome, 200)
        request = load.requests[0]
        answer = site.send(self._proven(site, request)).require(200)
        self.subject.judge(site, answer, self.accept)
        require_bytes(answer, outcome)
        used = {**request.headers, "DPoP": load.proofs[0]}
        site.send(Request(request.method, request.path, used)).require(401)

    def _request(self, site: Site) -> Request:
        return site.proven_request("GET", self.subject.path, headers={"Accept": self.accept})

    def _proven(self, site: Site, request: Request) -> Request:
        assert request.headers["DPoP"] == PROOF
        proof = site.proof("GET", self.subject.path)
        return Request(request.method, request.path, {**request.headers, "DPoP": proof})


@dataclass(frozen=True, slots=True)
class Replace:
    """PUT over existing resources, so many of them in turn, with another body each time.

    With fewer resources than connections, several writers have one at the same time, and which of
    them comes last is the server's choice.
    """

    container: str
    resources: int = REPLACED

    def furnish(self, site: Site) -> None:
        """Store the resources."""
        body = card(sequence_text(0)).encode()
        site.store(Stored(self._path(index), JSON_LD, body) for index in range(self.resources))

    def load(self, site: Site, label: str) -> Load:
        """One request for each resource."""
        del label
        return Load([_put(site, self._path(index)) for index in range(self.resources)], tally=True)

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> None:
        """Each resource holds the last body sent to it, or the body of one of its writers."""
        del label
        require_statuses(outcome, 200, 204, 205)
        if self.resources < outcome.connections:
            for path in map(self._path, range(self.resources)):
                number = _number_stored(site, path)
                if number is None or not 0 < number <= outcome.sent:
                    raise WrongAnswer(f"{path} does not hold what was sent")
            return
        last = {
            self._path(index): load.last_number(index, outcome.sent)
            for index in range(self.resources)
        }
        _require_numbers(site, {path: n for path, n in last.items() if n > 0}, outcome)

    def _path(self, index: int) -> str:
        return f"{self.container}r-{index:04d}.jsonld"


@dataclass(frozen=True, slots=True)
class CreateByPut:
    """PUT to fresh names in one container, a fresh container each round."""

    container: str

    def furnish(self, site: Site) -> None:
        """Nothing: the containers come with their first members."""

    def load(self, site: Site, label: str) -> Load:
        """A fresh name each time."""
        site.store([_first(self._place(label))])
        return Load([_put(site, f"{self._place(label)}n-{SEQUENCE}.jsonld")], tally=True)

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> None:
        """The names sent are listed, and a sample of them hold their bodies."""
        del load
        require_statuses(outcome, 201)
        place = self._place(label)
        prefix = site.url(place)
        names = {f"{prefix}n-{sequence_text(n)}.jsonld": n for n in range(1, outcome.sent + 1)}
        seen = _members(site, place)
        if seen - names.keys():
            raise WrongAnswer(f"{len(seen - names.keys())} members listed that were not sent")
        _require_count(len(seen), outcome)
        wanted = {path: names[prefix + path.removeprefix(place)] for path in _sample(site, seen)}
        _require_numbers(site, wanted, outcome)

    def _place(self, label: str) -> str:
        return f"{self.container}{label}/"


@dataclass(frozen=True, slots=True)
class CreateByPost:
    """POST with a fresh Slug to one container, a fresh container each round."""

    container: str

    def furnish(self, site: Site) -> None:
        """Nothing: the containers come with their first members."""

    def load(self, site: Site, label: str) -> Load:
        """A fresh Slug each time."""
        site.store([_first(self._place(label))])
        headers = {"Content-Type": JSON_LD, "Slug": f"n-{SEQUENCE}.jsonld"}
        request = site.request(
            "POST", self._place(label), headers=headers, body=card(SEQUENCE), authorized=True
        )
        return Load([request], tally=True)

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> None:
        """As many members as were acknowledged; a sample of Locations holds a body sent each."""
        del load
        require_statuses(outcome, 201)
        place = self._place(label)
        seen = _members(site, place)
        _require_count(len(seen), outcome)
        locations = {urljoin(site.url(place), value) for value in outcome.locations}
        if not locations or not locations <= seen:
            raise WrongAnswer("a Location that is not listed in its container")
        sample = _sample(site, locations)
        numbers = {_number_stored(site, path) for path in sample}
        if None in numbers or len(numbers) < len(sample):
            raise WrongAnswer("what was created does not hold what was sent")

    def _place(self, label: str) -> str:
        return f"{self.container}{label}/"


@dataclass(frozen=True, slots=True)
class Delete:
    """DELETE of resources of a fresh container each round, each of them once."""

    container: str
    resources: int = 8192

    def furnish(self, site: Site) -> None:
        """Nothing: each round has resources of its own."""

    def load(self, site: Site, label: str) -> Load:
        """The name of another resource each time."""
        place = self._place(label)
        names = [f"d-{number:05d}.jsonld" for number in range(self.resources)]
        body = card(sequence_text(0)).encode()
        site.store([_first(place), *(Stored(f"{place}{name}", JSON_LD, body) for name in names)])
        request = site.request("DELETE", f"{place}{PROOF}", headers={}, authorized=True)
        return Load([request], tally=True, proofs=names)

    def verify(self, site: Site, label: str, load: Load, outcome: Outcome) -> None:
        """Those deleted are no longer listed, and nothing else is missing."""
        require_statuses(outcome, 200, 204, 205)
        place = self._place(label)
        seen = _members(site, place)
        sent = {site.url(f"{place}{name}") for name in load.proofs[: outcome.sent]}
        everything = {site.url(f"{place}{name}") for name in load.proofs}
        if everything - sent - seen:
            raise WrongAnswer(f"{len(everything - sent - seen)} are gone that nobody deleted")
        if len(seen & sent) > outcome.unanswered:
            raise WrongAnswer(f"{len(seen & sent)} are listed that were deleted")

    def _place(self, label: str) -> str:
        return f"{self.container}{label}/"


def _put(site: Site, path: str) -> Request:
    headers = {"Content-Type": JSON_LD}
    return site.request("PUT", path, headers=headers, body=card(SEQUENCE), authorized=True)


def _first(place: str) -> Stored:
    return Stored(f"{place}first.jsonld", JSON_LD, card(sequence_text(0)).encode())


def _members(site: Site, place: str) -> set[str]:
    answer = site.get(place, JSON_LD, authorized=True).require(200)
    seen = listed(answer, site.url(place))
    first = site.url(_first(place).path)
    if first not in seen:
        raise WrongAnswer("the container lost its first member")
    return seen - {first}


def _sample(site: Site, urls: Iterable[str]) -> list[str]:
    """Return a few of these as paths below the pod, spread over the whole."""
    ordered = sorted(urlsplit(url).path.removeprefix(site.pod) for url in urls)
    return ordered[:: max(1, len(ordered) // SAMPLE)]


def _require_numbers(site: Site, wanted: Mapping[str, int], outcome: Outcome) -> None:
    wrong = [path for path, number in wanted.items() if _number_stored(site, path) != number]
    if len(wrong) > outcome.unanswered:
        raise WrongAnswer(
            f"{len(wrong)} of {len(wanted)} resources do not hold what was sent, such as {wrong[0]}"
        )


def _number_stored(site: Site, path: str) -> int | None:
    """Return the sequence number whose body is stored there, byte by byte; None if none is."""
    answer = site.get(path, JSON_LD, authorized=True).require(200)
    before, _, after = card(SEQUENCE).partition(SEQUENCE)
    text = answer.body.decode("utf-8", "replace")
    digits = text.removeprefix(before).removesuffix(after)
    sent = digits.isdecimal() and text == card(digits) and answer.media_type == JSON_LD
    return int(digits) if sent else None


def require_statuses(outcome: Outcome, *expected: int) -> None:
    """Raise WrongAnswer unless all answers of a round had these statuses."""
    outcome.require_no_errors()
    other = {status: n for status, n in outcome.statuses.items() if status not in expected}
    if other:
        raise WrongAnswer(f"statuses {other} among {outcome.answered} answers")


def _require_count(stored: int, outcome: Outcome) -> None:
    acknowledged = outcome.statuses.get(201, 0)
    if not acknowledged <= stored <= outcome.sent:
        raise WrongAnswer(f"{stored} listed, {acknowledged} acknowledged, {outcome.sent} sent")


def require_bytes(answer: Answer, outcome: Outcome) -> None:
    """Raise WrongAnswer unless as many bytes came as so many answers like this one have."""
    if answer.size_bytes is not None:
        least, most = float(answer.size_bytes), float(answer.size_bytes)
    else:
        least, most = len(answer.body), len(answer.body) * CHUNK_FRAMING + HEADER_SECTION_BYTES
    in_flight = outcome.connections
    if (
        not outcome.answered * least
        <= outcome.received_bytes
        <= ((outcome.answered + in_flight) * most)
    ):
        each = outcome.received_bytes / outcome.answered
        raise WrongAnswer(f"{each:.1f} bytes an answer instead of {least:.0f}")
