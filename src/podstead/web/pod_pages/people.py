"""Who is signed in to the pages?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from podstead.core.identifiers import ResourcePath
from podstead.core.identity import Identity
from podstead.web.request import Request
from podstead.web.response import HeaderField


class SignedInBy(Enum):
    """What a session of a person began with."""

    ACCOUNT = "account"
    """Signed in to an account of the provider at this origin."""
    POD_TOKEN = "pod-token"  # noqa: S105 - the name of a kind
    ELSEWHERE = "elsewhere"
    """Signed in at another provider."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person who is signed in. ``identity`` is what the gate decides about."""

    identity: Identity
    name: str
    """How the pages call the person."""
    csrf_token: str
    signed_in_by: SignedInBy
    pods: Sequence[ResourcePath] = ()
    """The root containers of the person's own pods on this server."""
    account_id: str | None = None
    is_operator: bool = False
    """Whether the person may use the operator's console."""
    has_new_terms: bool = False
    """Whether the person has not accepted the present terms of this server."""
    signed_in_recently: bool = False
    """Whether the person has signed in to the account within the last minutes."""

    @property
    def web_id(self) -> str:
        return self.identity.iri


class People(Protocol):
    """Finds the person that a request comes from by one kind of session, and ends that session."""

    async def person(self, request: Request) -> Person | None:
        """The person, ``None`` without a valid session of this kind. Raises StorageError,
        Overloaded."""

    async def sign_out(self, request: Request) -> Sequence[HeaderField]:
        """End the session, if there is one; the headers remove its cookies. Raises StorageError,
        Overloaded."""


@dataclass(frozen=True, slots=True)
class PeopleByAnySession:
    """Finds people by several kinds of sessions; the first that is valid applies."""

    kinds: Sequence[People]

    async def person(self, request: Request) -> Person | None:
        """The person, ``None`` without any valid session. Raises StorageError, Overloaded."""
        if request.fields.get_raw(b"cookie") is None:
            return None
        for kind in self.kinds:
            found = await kind.person(request)
            if found is not None:
                return found
        return None

    async def sign_out(self, request: Request) -> Sequence[HeaderField]:
        """End every session of the browser. Raises StorageError, Overloaded."""
        return [header for kind in self.kinds for header in await kind.sign_out(request)]
