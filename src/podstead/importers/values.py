"""The data of other servers as values: pods, the resources in them, and accounts.

Readers only describe the data; they write nothing and do not decide what is imported.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Protocol

import msgspec

from podstead.core.errors import RequestRefused
from podstead.core.value import Value


class NotThisServer(RequestRefused):
    """A folder does not contain what a server of this kind stores."""


class LeftOut(Value):
    """Something that cannot be imported, or not unchanged; ``path`` is where it is on the other
    server's disk, relative to its folder."""

    path: str
    reason: str


class FoundResource(msgspec.Struct, frozen=True):
    """A document, container, ACL or description.

    ``path`` is relative to the root container of its pod, in canonical form: empty for the root,
    with a slash at the end for containers; that of an ACL or a description ends in ``.acl`` or
    ``.meta``. ``url`` is the address that it had, against which its relative names are resolved.
    """

    path: str
    url: str
    content_type: str
    parts: tuple[str, ...] | None = None
    """Where its file is; ``None`` for a container, and for content that the reader provides."""
    modified_ms: int | None = None
    content: bytes | None = None


class FoundPod(msgspec.Struct, frozen=True):
    """A pod: its name there, the URL of its root container, and the WebID of its owner, as far as
    they are known."""

    name: str
    url: str
    owner: str | None
    folder: tuple[str, ...]
    """Where its files are, relative to the folder of all files."""


class FoundSecret(msgspec.Struct, frozen=True):
    """Client credentials of an account."""

    credential_id: str
    secret: str
    label: str
    web_id: str


class FoundAccount(msgspec.Struct, frozen=True):
    """The sign-in data of a person, for one pod or several."""

    pods: tuple[str, ...]
    """The URLs of its pods."""
    web_ids: tuple[str, ...]
    email: str | None
    password_hash: str | None
    secrets: tuple[FoundSecret, ...] = ()


class OtherServer(Protocol):
    """The data of another server."""

    @property
    def base_url(self) -> str:
        """The URL at which it was served, with a trailing slash."""

    @property
    def pods(self) -> Sequence[FoundPod]: ...

    @property
    def accounts(self) -> Sequence[FoundAccount]: ...

    @property
    def left_out(self) -> Sequence[LeftOut]:
        """The items outside of pods that cannot be imported."""

    def resources(self, pod: FoundPod) -> Iterator[FoundResource | LeftOut]:
        """Everything in a pod, containers before their members."""

    def content(self, resource: FoundResource) -> AsyncIterator[bytes]:
        """The content of a resource that is not a container. Iterating raises Unreadable."""
