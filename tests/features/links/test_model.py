"""What the agent of a link may do, for random rules, against a plain model."""

from __future__ import annotations

import random
from dataclasses import dataclass

from podstead.app.services import Services
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.features.links import LinkSettings
from podstead.features.links.sharing_links import LINKS, OpenLink, SharingLink, SharingLinks
from podstead.storage.record_store import Versioned
from podstead.storage.sqlite import SqliteStore
from tests.support.application import Server
from tests.support.clock import FakeClock

ROUNDS = 60
LINK, OTHER = "0" * 32, "1" * 32
EVERYONE = "acl:agentClass foaf:Agent"
SIGNED_IN = "acl:agentClass acl:AuthenticatedAgent"
FOLDER, DOCUMENT, BESIDE = "/alice/f/", "/alice/f/doc", "/alice/beside"
ALLOWED = {"view": {"Read"}, "edit": {"Read", "Append", "Write"}, "add": {"Append"}}


def iri(link: str) -> str:
    return f"acl:agent <http://localhost:3000/.links/{link}#it>"


WHO = (EVERYONE, SIGNED_IN, iri(LINK), iri(OTHER))


@dataclass(frozen=True)
class Rule:
    """Whoever it is has the modes on the subject of the ACL, or also on what is inside."""

    who: str
    modes: frozenset[str]
    inside: bool


Rules = dict[str, list[Rule]]
"""The rules by the subjects of ACLs."""


def random_rules(chosen: random.Random) -> Rules:
    found: Rules = {}
    for subject in (FOLDER, DOCUMENT, BESIDE):
        if chosen.random() < 0.7:
            found[subject] = [
                Rule(
                    chosen.choice(WHO),
                    frozenset(each for each in ("Read", "Append", "Write") if chosen.random() < 0.5)
                    or frozenset({"Read"}),
                    subject.endswith("/") and chosen.random() < 0.6,
                )
                for _ in range(chosen.randrange(4))
            ]
    return found


def granted(rules: Rules, path: str, who: set[str]) -> set[str]:
    """The modes by the rules alone."""
    if path in rules:
        applying = rules[path]
    elif path == DOCUMENT and FOLDER in rules:
        applying = [each for each in rules[FOLDER] if each.inside]
    else:
        applying = []
    modes = {mode for each in applying if each.who in who for mode in each.modes}
    return modes | ({"Append"} if "Write" in modes else set())


def expected(rules: Rules, path: str, link: SharingLink, *, is_over: bool) -> set[str]:
    """What the agent of the link may do, as one would say it."""
    public = granted(rules, path, {EVERYONE})
    named = {
        subject for subject, every in rules.items() if any(each.who == iri(LINK) for each in every)
    }
    place = link.path
    if is_over or link.paused or place not in named:
        return public
    covers = path == place or (
        place.endswith("/") and path.startswith(place) and link.kind != "add"
    )
    modes = granted(rules, path, {EVERYONE, iri(LINK)})
    return public | (modes & ALLOWED[link.kind] if covers else set())


async def test_links_and_rules_against_a_model(
    server: Server, clock: FakeClock, store: SqliteStore, settings: Settings
) -> None:
    services = Services(settings, clock)
    services.store = store
    links = SharingLinks(
        services.records, base_url=services.base_url, keys=(b"k",), limits=LinkSettings
    )
    chosen = random.Random(26)
    for path in (DOCUMENT, BESIDE):
        assert (await server.alice.put(path, "x", "text/plain")).status == 201
    seen = set()
    for _ in range(ROUNDS):
        rules = random_rules(chosen)
        for subject in (DOCUMENT, FOLDER, BESIDE):
            await server.alice.delete(f"{subject}.acl")
            if subject in rules:
                turtle = [
                    (
                        each.who,
                        " ".join(f"{'+' if each.inside else ''}{mode}" for mode in each.modes),
                    )
                    for each in rules[subject]
                ]
                assert (await server.put_acl(subject, *turtle)).status < 300
        ends_s = chosen.choice((None, clock.now_s() + 60))
        link = SharingLink(
            path=chosen.choice((FOLDER, DOCUMENT, BESIDE, "/alice/gone")),
            kind=chosen.choice(tuple(ALLOWED)),
            name="",
            created_s=clock.now_s(),
            ends_s=ends_s,
            paused=chosen.random() < 0.1,
        )
        await services.records.commit([LINKS.put(LINK, link, owner="/alice/")])
        identity = _identity(links, await services.records.read(LINKS, LINK))
        is_over = False
        for _ in range(2):
            for path in (FOLDER, DOCUMENT, BESIDE):
                grant, _snapshot = await services.gate.current_grant(
                    identity, None, ResourcePath(path)
                )
                modes = {mode.value.capitalize() for mode in grant.user}
                wanted = expected(rules, path, link, is_over=is_over)
                assert modes == wanted, (rules, path, link)
                seen.add((link.kind, frozenset(modes)))
            clock.advance(61)
            is_over = ends_s is not None
    assert len(seen) > 8


def _identity(links: SharingLinks, stored: Versioned[SharingLink] | None) -> Identity:
    """The agent as it was when the link was still good for all."""
    assert stored is not None
    found = OpenLink(LINK, stored.value, ResourcePath("/alice/"), "/alice/", None, stored.unchanged)
    return links.identity_of(found)
