"""Data roots of a given size, written through the storage engine in this process.

The commits are those that the server would make, many puts in each, so that a root of a million
resources takes a minute or two instead of hours. The index over access rules is not marked as
complete in such a root, so a worker goes through all ACLs in the background, as after an upgrade.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.documents import card
from bench.inprocess import BASE, SeededRandomness, StandingClock
from bench.messages import JSON_LD, TURTLE, sequence_text
from podstead.app.adapters.keys import load_token_keys
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath
from podstead.pods.provision import PodProvisioner, TokenPolicy
from podstead.storage.keys import KeyFiles
from podstead.storage.layout import RootLayout
from podstead.storage.records import Committed, InlineBody, Put, ResourceKind, Version, Write
from podstead.storage.sqlite import SqliteStore

RESOURCES_OF_A_POD: Final = 17
"""What `podstead.pods.template` creates."""

_AT_ONCE: Final = 500
_PUTS: Final = 1000
_EMPTY: Final = InlineBody(b"")
_BODY: Final = InlineBody(card(sequence_text(0)).encode())


@dataclass(slots=True)
class Pods:
    """Pods of a root: names and owners' tokens of up to `asked` of them, spread evenly."""

    names: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    def web_id(self, number: int) -> str:
        """The owner of a pod."""
        return f"{BASE}/{self.names[number]}/#me"


class Builder:
    """Writes into one root. The root must be held, and the store open."""

    def __init__(self, settings: Settings, store: SqliteStore) -> None:
        self._store = store
        self._randomness = SeededRandomness(3)
        key = load_token_keys(KeyFiles(RootLayout(settings.root).keys))[0]
        self._pods = PodProvisioner(
            base_url=BASE,
            store=store,
            tokens=TokenPolicy(key=key, lifetime_s=0),
            clock=StandingClock(),
            randomness=self._randomness,
        )

    async def pods(self, count: int, *, asked: int) -> Pods:
        """Create so many pods."""
        found = Pods()
        every = max(1, count // asked)
        for start in range(0, count, _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, count))
            made = await asyncio.gather(*(self._pods.create(f"p{n:06d}") for n in numbers))
            for number, pod in zip(numbers, made, strict=True):
                if number % every == 0 and len(found.names) < asked and pod.token is not None:
                    found.names.append(pod.name)
                    found.tokens.append(pod.token)
        return found

    async def container(self, path: str, size: int) -> None:
        """Create a container with so many small JSON-LD documents in it."""
        await self._put(
            [Put(ResourcePath(path), ResourceKind.CONTAINER, TURTLE, _EMPTY, creates=True)]
        )
        for start in range(0, size, _PUTS):
            numbers = range(start, min(start + _PUTS, size))
            await self._put([self._document(f"{path}m-{n:06d}.jsonld") for n in numbers])

    async def documents(self, paths: Sequence[str]) -> None:
        """Create small JSON-LD documents; their containers must exist."""
        for start in range(0, len(paths), _PUTS):
            await self._put([self._document(path) for path in paths[start : start + _PUTS]])

    async def _put(self, puts: Sequence[Put]) -> None:
        version = Version(self._randomness.token_hex(8))
        write = Write(version=version, at_ms=StandingClock().now_ms(), puts=tuple(puts))
        outcome = await self._store.commit(write)
        assert isinstance(outcome, Committed), outcome

    @staticmethod
    def _document(path: str) -> Put:
        return Put(ResourcePath(path), ResourceKind.DOCUMENT, JSON_LD, _BODY, creates=True)


def rules_turtle(path: str, owner: str, count: int, *, last: str = "") -> str:
    """Return an ACL of so many authorizations, each for an agent of its own.

    `last` names whom one more is for, with its modes; the owner comes behind all of them. The rules
    of a container are inherited by its members.
    """
    place = f"acl:accessTo <{BASE}{path}>"
    if path.endswith("/"):
        place += f"; acl:default <{BASE}{path}>"
    others = (
        f"acl:agent <https://friend-{number}.example/#me>; acl:mode acl:Read"
        for number in range(count)
    )
    owned = f"acl:agent <{owner}>; acl:mode acl:Read, acl:Write, acl:Control"
    rules = [*others, *([last] if last else []), owned]
    lines = (f"<#r{n}> a acl:Authorization; {place}; {rule}." for n, rule in enumerate(rules))
    return "\n".join(["@prefix acl: <http://www.w3.org/ns/auth/acl#>.", *lines])


def group_turtle(member: str, count: int) -> str:
    """Return a group of so many members, the last of whom is `member`."""
    others = (f"<https://friend-{number}.example/#me>" for number in range(count - 1))
    members = ", ".join([*others, f"<{member}>"])
    return (
        "@prefix vcard: <http://www.w3.org/2006/vcard/ns#>.\n"
        f"<#group> a vcard:Group; vcard:hasMember {members}.\n"
    )
