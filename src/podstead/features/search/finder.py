"""Finds documents for somebody: what the index proposes, as far as the gate lets them read it.

The gate decides at the moment of the question, about each document before it is counted, ordered or
excerpted, and once for all documents that the same ACL governs in the same way. The index is asked
only for documents with rules that let this person read. If those are too many to decide about,
documents are looked at in bounded numbers, and the answer says that it may not be complete.
A document that is gone, or was changed since it was indexed, is not shown.

The order uses nothing but the documents themselves: hits in names first, then the share of the hits
in the text, then the newest. Statistics of the whole index would tell of what one may not read.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from msgspec import structs

from podstead.core.identifiers import ResourcePath, acl_of, is_container
from podstead.core.identity import Identity
from podstead.features.search.analysis import Question, parse_question, snippet
from podstead.features.search.index import Candidate, Index, IndexQuery, StoredText, rules_above
from podstead.resources.costly_work import AgentSemaphores
from podstead.storage.protocol import Snapshot, Store
from podstead.wac.effective import acl_paths, paths_to_read
from podstead.wac.gate import Gate, GrantedAccess
from podstead.wac.modes import Mode

MAX_RULES: Final = 2_000
"""The number of rules on which the gate decides before the index is asked, at most."""
CONSIDERED: Final = 500
"""So many readable documents are ordered at most; further ones are found by narrower questions."""
MAX_STEPS: Final = 4
"""How often the index is asked for so many, if most of them turn out not to be readable."""
AT_ONCE: Final = 50
"""After so many decisions or ranks, other requests go on."""
RANKED_CHARACTERS: Final = 20_000
"""So much of a document is looked at for its place in the order."""
PAGE: Final = 20


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: an agent, from an origin."""

    agent: Identity | None
    origin: str | None


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found, with the parts of its excerpt, of which some are hits."""

    path: ResourcePath
    media_type: str
    size_bytes: int
    modified_ms: int
    excerpt: Sequence[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page of hits. ``has_more`` is whether another page follows; ``is_complete`` is whether
    everything was looked at."""

    hits: Sequence[Hit]
    has_more: bool
    is_complete: bool


@dataclass(slots=True)
class Finder:
    """Answers questions in one worker."""

    index: Index
    store: Store
    gate: Gate
    _turns: AgentSemaphores = field(init=False, default_factory=AgentSemaphores)

    async def find(
        self,
        asker: Asker,
        places: Sequence[ResourcePath],
        text: str,
        *,
        newest: bool = False,
        page: int = 0,
    ) -> FoundPage:
        """What the asker may read of what matches below some containers, or in some documents.
        Raises RateLimited, StorageError."""
        async with self._turns.of(asker.agent):
            return await self._find(asker, places, text, newest=newest, page=page)

    async def _find(
        self, asker: Asker, places: Sequence[ResourcePath], text: str, *, newest: bool, page: int
    ) -> FoundPage:
        position = await self.index.position()
        if position is None or not places:
            return FoundPage((), has_more=False, is_complete=False)
        question = parse_question(text, await self.index.languages())
        decisions = _Decisions(self.gate.for_many(self.store), self.store, asker)
        rules = await self._readable_rules(decisions, places)
        selection = IndexQuery(question, places, rules, CONSIDERED, newest)
        found: list[Candidate] = []
        is_complete = position.cursor is None
        for step in range(MAX_STEPS):
            asked = structs.replace(selection, offset=step * CONSIDERED)
            candidates = await self.index.candidates(asked)
            found += await decisions.readable(candidates, question)
            if len(candidates) < CONSIDERED:
                break
            if len(found) >= CONSIDERED:
                is_complete = False
                break
            await asyncio.sleep(0)  # lets other requests go on
        else:
            is_complete = False
        if not newest and question.wanted:
            found = await self._ranked(found, question)
        shown = found[page * PAGE : (page + 1) * PAGE]
        texts = await self.index.texts(each.path for each in shown)
        hits = []
        for each in shown:
            hits.append(_hit(each, texts.get(each.path), question))
            await asyncio.sleep(0)
        return FoundPage(hits, len(found) > (page + 1) * PAGE, is_complete)

    async def _ranked(self, found: Sequence[Candidate], question: Question) -> list[Candidate]:
        paths = (each.path for each in found)
        terms = await self.index.terms(paths, max_characters=RANKED_CHARACTERS)
        ranks = {}
        for each in found:
            ranks[each.path] = _rank(each, terms.get(each.path, ""), question)
            if len(ranks) % AT_ONCE == 0:
                await asyncio.sleep(0)
        return sorted(found, key=lambda each: ranks[each.path])

    async def _readable_rules(
        self, decisions: "_Decisions", places: Sequence[ResourcePath]
    ) -> Sequence[ResourcePath] | None:
        rules: dict[ResourcePath, None] = {}
        for place in places:
            found: Sequence[ResourcePath] = [place, *rules_above(place)]
            if is_container(place):
                found = await self.index.rules(place, limit=MAX_RULES + 1)
            rules.update(dict.fromkeys(found))
            if len(rules) > MAX_RULES:
                return None
        return await decisions.possible(list(rules))


class _Decisions:
    """What the gate says to one asker at one moment."""

    def __init__(self, gate: Gate, store: Store, asker: Asker) -> None:
        self._gate = gate
        self._store = store
        self._asker = asker
        self._known: dict[tuple[ResourcePath | None, bool], GrantedAccess] = {}

    async def possible(self, rules: Sequence[ResourcePath]) -> Sequence[ResourcePath]:
        """The rules that let the asker read something. A limit of the credentials may allow some of
        the documents only, so it is left to the decisions about these."""
        paths = {acl for path in rules for acl in acl_paths(path)}
        snapshot = await self._store.read_metadata(paths)
        agent = self._asker.agent
        if agent is not None and agent.limit is not None:
            agent = replace(agent, limit=None)
        found = []
        for number, path in enumerate(rules):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            grant = await self._gate.grant(agent, self._asker.origin, path, snapshot)
            if grant.allows(Mode.READ):
                found.append(path)
        return found

    async def readable(
        self, candidates: Sequence[Candidate], question: Question
    ) -> Sequence[Candidate]:
        """The candidates that are as they were indexed, and that the asker may read."""
        paths = {path for each in candidates for path in paths_to_read(each.path)}
        snapshot = await self._store.read_metadata(paths)
        found = []
        for number, each in enumerate(candidates):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            metadata = snapshot[each.path]
            if metadata is None or metadata.version != each.version:
                continue
            grant = await self._grant(each.path, snapshot)
            if grant.allows(Mode.READ) and self._may_know_author(each, grant, question):
                found.append(each)
        return found

    async def _grant(self, path: ResourcePath, snapshot: Snapshot) -> GrantedAccess:
        agent, origin = self._asker.agent, self._asker.origin
        if agent is not None and agent.limit is not None:
            return await self._gate.grant(agent, origin, path, snapshot)
        acl = next((each for each in acl_paths(path) if snapshot[each] is not None), None)
        key = (acl, acl == acl_of(path))
        if key not in self._known:
            self._known[key] = await self._gate.grant(agent, origin, path, snapshot)
        return self._known[key]

    def _may_know_author(
        self, candidate: Candidate, grant: GrantedAccess, question: Question
    ) -> bool:
        """Who changed a document last, people with Control know, and those who did."""
        if not question.authors or grant.allows(Mode.CONTROL):
            return True
        agent = self._asker.agent
        return agent is not None and candidate.author in (agent.iri, *agent.aliases)


def _rank(candidate: Candidate, terms: str, question: Question) -> tuple[bool, float, int, str]:
    text = f" {terms} "
    hits = sum(
        text.count(f" {words}")
        for clause in question.wanted
        for words in (" ".join(clause.words) + ("" if clause.is_prefix else " "),)
    )
    share = hits / (1 + text.count(" "))
    return not candidate.in_name, -share, -candidate.modified_ms, candidate.path


def _hit(candidate: Candidate, stored: StoredText | None, question: Question) -> Hit:
    excerpt: Sequence[tuple[str, bool]] = ()
    if stored is not None and stored.text:
        excerpt = snippet(question, stored.text, stored.language)
    return Hit(
        candidate.path,
        candidate.media_type,
        candidate.size_bytes,
        candidate.modified_ms,
        excerpt,
    )
