"""The notices of one person: one record, limited in number, in which nobody crowds out the others.

A box belongs to a pod, and goes with it. Whoever did something is stored without the base URL of
the server, so the record stays right when that changes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from podstead.storage.record_store import RecordKind

MAX_NOTICES: Final = 60
"""How many notices a person has at most; the oldest that were read go first."""
MAX_OF_SENDER: Final = 10
"""How many of them come from one sender; the sender's oldest goes first."""


class MailMode(Enum):
    """When notices are sent by mail; the values are stored."""

    EACH = "each"
    DAILY = "daily"
    NEVER = "never"


class KeptNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A notice. ``by`` is the IRI of whoever did it, of this server's own the path."""

    notice_id: str
    kind: str
    at_ms: int
    address: str
    name: str
    by: str = ""
    message: str = ""
    is_read: bool = False
    is_mailed: bool = False

    @property
    def about(self) -> tuple[str, ...]:
        """Equal for notices that say the same."""
        return (self.kind, self.by, self.address, self.name)


class NoticeBox(msgspec.Struct, frozen=True, omit_defaults=True):
    """The notices of a person, the newest first, and how they are sent. The key is the root of the
    person's pod, which is the owner."""

    notices: tuple[KeptNotice, ...] = ()
    mail: MailMode = MailMode.DAILY

    @property
    def unread(self) -> Sequence[KeptNotice]:
        """Those that have not been read."""
        return [each for each in self.notices if not each.is_read]

    def find(self, about: tuple[str, ...]) -> KeptNotice | None:
        """The notice that says this."""
        return next((each for each in self.notices if each.about == about), None)


class DueDigest(msgspec.Struct, frozen=True):
    """A message with the notices of a day is due. The key is when, and the root of the pod."""


NOTICE_BOXES: Final = RecordKind("notice-box", NoticeBox)
DIGESTS: Final = RecordKind("notice-digest", DueDigest)


def sender_of(by: str) -> str:
    """Whom a notice counts for: an owner of a pod here or, of all others, the server that they come
    from, since whoever runs one can be any number of people."""
    if by.startswith("/"):
        return by[: by.find("/", 1) + 1]
    parts = urlsplit(by)
    return parts.netloc or parts.scheme


def with_notice(box: NoticeBox, new: KeptNotice) -> NoticeBox:
    """The box with one more notice. One that says the same is replaced."""
    others = [each for each in box.notices if each.about != new.about]
    of_sender = [each for each in others if new.by and sender_of(each.by) == sender_of(new.by)]
    if len(of_sender) >= MAX_OF_SENDER:
        others.remove(of_sender[-1])
    if len(others) >= MAX_NOTICES:
        others.remove(_dispensable(others))
    return replace(box, notices=(new, *others))


def _dispensable(notices: Sequence[KeptNotice]) -> KeptNotice:
    """The oldest that was read; if none was, the oldest of the sender with the most."""
    senders = Counter(sender_of(each.by) for each in notices)
    return max(
        reversed(notices),
        key=lambda each: (each.is_read, not each.is_read and senders[sender_of(each.by)]),
    )


def with_read(box: NoticeBox, notice_ids: Iterable[str] | None = None) -> NoticeBox:
    """The box with some notices read, or all of them."""
    ids = None if notice_ids is None else set(notice_ids)
    read = (
        each if ids is not None and each.notice_id not in ids else replace(each, is_read=True)
        for each in box.notices
    )
    return replace(box, notices=tuple(read))
