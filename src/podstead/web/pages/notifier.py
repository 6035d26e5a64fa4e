"""How the rest of the server tells people what concerns them: that somebody shared something with
them, for example.

A feature takes what they are told, keeps it and delivers it. Without one, nothing happens.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from podstead.authn.web_ids import LocalWebIds
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.storage.records import Record
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.texts import N_

MAX_NAME_CHARACTERS: Final = 120
"""What is longer is cut off."""


@dataclass(frozen=True, slots=True)
class PersonNoticeKind:
    """A kind of notices. ``name`` is stored. ``text`` is what the notice says, a text of the
    catalogues in which ``%(who)s`` and ``%(name)s`` stand for who did it and what it is about."""

    name: str
    text: str
    is_mailed: bool = True
    """Whether notices of this kind are sent by mail to people who want that; not if there is a
    message about the same already."""
    again_ms: int = 0
    """For how long the same is not told again."""


PERSON_NOTICE_KINDS: Final[dict[str, PersonNoticeKind]] = {}
"""All kinds by name."""


def person_notice_kind(
    name: str, text: str, *, is_mailed: bool = True, again_ms: int = 0
) -> PersonNoticeKind:
    """Define a kind; features define kinds of their own. Raises ValueError if there is one of that
    name."""
    if name in PERSON_NOTICE_KINDS:
        raise ValueError(f"There is a kind of notices {name} already")
    kind = PERSON_NOTICE_KINDS[name] = PersonNoticeKind(name, text, is_mailed, again_ms)
    return kind


SHARED: Final = person_notice_kind("shared", N_("%(who)s shared “%(name)s” with you"))
ALLOWED: Final = person_notice_kind("allowed", N_("%(who)s gave you access to “%(name)s”"))
REFUSED: Final = person_notice_kind("refused", N_("%(who)s declined your request for “%(name)s”"))
LET_IN: Final = person_notice_kind(
    "let-in", N_("The application “%(name)s” may use your pod"), is_mailed=False
)
NEW_BROWSER: Final = person_notice_kind(
    "new-browser", N_("A new browser signed in to your account: %(name)s"), is_mailed=False
)


@dataclass(frozen=True, slots=True)
class PersonNotice:
    """What a person is told.

    ``address`` is the path of the page to open, with its query. ``by`` is the IRI of whoever did
    it, empty for the server itself, ``name`` what it is about, and ``message`` what that person
    wrote, as plain text.
    """

    kind: PersonNoticeKind
    address: str
    name: str
    by: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ShownPersonNotice:
    """A notice as pages show it. ``address`` opens it, and marks it as read."""

    notice_id: str
    text: str
    message: str
    address: str
    at_ms: int
    is_unread: bool
    by: str = ""
    """The IRI of whoever did it; empty for the server itself."""
    who: str = ""
    """What the page calls that person."""


class NoticeChannel:
    """A further way in which people get their notices, such as by the browsers of their phones. The
    notifier asks each for its part."""

    template: str
    """The template of its section on the page of notices, which gets what ``facts`` returns."""

    async def facts(self, page: PageRequest, root: ResourcePath) -> Mapping[str, object]:
        """What the section shows to the owner of the pod. Raises ServerTrouble."""
        raise NotImplementedError

    async def joining(
        self, root: ResourcePath, notice_id: str, say: Callable[[str], str]
    ) -> Sequence[Record]:
        """The records that queue a new notice for the owner of a pod; they join the write that
        keeps it. ``say`` gives its text in a language, as messages outside of the pages may have
        it. Raises ServerTrouble."""
        raise NotImplementedError


def pod_of_notices(person: Person, web_ids: LocalWebIds) -> ResourcePath | None:
    """The pod of the person whose owner is told things: that of the WebID, or else the first."""
    path = web_ids.path_of(person.web_id) if web_ids.holds(person.web_id) else None
    own = None if path is None else storage_root(path)
    return own if own in person.pods else next(iter(person.pods), None)


class Notifier:
    """Takes what people are told; this one takes nothing.

    Nothing here decides about access: a notice does not say what the person may see, and whoever
    tells must not put into it what the person may not know.
    """

    address: str = ""
    """The path of the page with the notices of the person who is signed in; empty without one."""

    async def tell(self, person: str, notice: PersonNotice) -> None:
        """Tell a person something, by WebID. Only the owners of pods here whose WebID is in their
        pod are told. Never raises: the event has already happened."""

    async def unread(
        self,
        person: Person,  # noqa: ARG002
        *,
        opened: str,  # noqa: ARG002
    ) -> int:
        """How many notices the person has not read. Every page asks, with its path as ``opened``:
        what others did there is read by that. Raises ServerTrouble."""
        return 0

    async def newest_unread(
        self,
        person: Person,  # noqa: ARG002
        *,
        limit: int,  # noqa: ARG002
    ) -> Sequence[ShownPersonNotice]:
        """The newest of them. Raises ServerTrouble."""
        return ()
