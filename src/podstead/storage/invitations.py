"""Invitations to create pods: codes that work a number of times, until they end.

Only the hash of a code is stored. A use is counted in the write that creates the pod, on the
condition that the invitation is as it was read: whoever registers at the same time reads it again.
So no race gives more uses than there are, and a registration that fails uses up nothing.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from podstead.core.date_times import DAY_MS
from podstead.core.errors import AccessDenied, NotFound
from podstead.storage.codes import StorageCodes
from podstead.storage.record_store import Changes, RecordKind, RecordStore, Versioned, secret_key
from podstead.storage.records import Precondition, Record, Write

MAX_USES: Final = 10_000
MAX_DAYS: Final = 3650
MAX_INVITATIONS: Final = 1000
"""How many are listed, and so how many there may be at a time."""
MAX_NOTE_CHARACTERS: Final = 500
MAX_ATTEMPTS: Final = 50
"""How often a registration reads its invitation again because others have used it meanwhile. Each
time, one of them has succeeded."""
_CODE_BYTES: Final = 10
_ID_BYTES: Final = 4
_GROUP: Final = 4
# The digits of Crockford's Base32, without letters that look like others.
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_MISREAD: Final = str.maketrans({"o": "0", "i": "1", "l": "1", "-": None, " ": None})


class Invitation(msgspec.Struct, frozen=True):
    """An invitation; the key of the record is the hash of its code."""

    invitation_id: str
    """What operators call it by; not secret."""
    uses: int
    uses_left: int
    created_ms: int
    note: str = ""
    """What the operator says to those who are invited."""
    sent_to: str = ""
    """The address to which it is sent."""


INVITATIONS: Final = RecordKind("invitation", Invitation)


class UnusableInvitation(AccessDenied):
    """No invitation has this code, or it has ended, or it is used up; clients compare
    ``known_text``. Which of these it is tells a stranger nothing about codes."""


def _missing() -> UnusableInvitation:
    return UnusableInvitation(StorageCodes.INVITATION_REQUIRED, known_text="Invitation required")


def _wrong() -> UnusableInvitation:
    return UnusableInvitation(StorageCodes.INVITATION_UNUSABLE, known_text="Invalid invitation")


@dataclass(frozen=True, slots=True)
class InvitationUse:
    """What joins the write that uses an invitation."""

    invitation_id: str
    note: str
    records: Sequence[Record]
    preconditions: Sequence[Precondition]

    def joined_to(self, write: Write) -> Write:
        """The write with the use of the invitation."""
        return msgspec.structs.replace(
            write,
            preconditions=(*write.preconditions, *self.preconditions),
            records=(*write.records, *self.records),
        )


Admission = Callable[[], Awaitable[InvitationUse]]
"""What lets one person register. It is called again if others have used the invitation
meanwhile."""


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """A new invitation, its code, and the record that creates it."""

    code: str
    invitation: Invitation
    expires_ms: int
    record: Record


class Invitations:
    """Creates, finds and uses invitations. Every method raises StorageError."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def using(self, code: str) -> InvitationUse:
        """One use of the invitation with that code. Raises UnusableInvitation."""
        key = secret_key(bare_code(code))
        stored = await self._records.read(INVITATIONS, key) if code.strip() else None
        if stored is None or stored.value.uses_left < 1:
            raise _wrong() if code.strip() else _missing()
        used = msgspec.structs.replace(stored.value, uses_left=stored.value.uses_left - 1)
        records = [INVITATIONS.replace(stored, used)]
        value = stored.value
        return InvitationUse(value.invitation_id, value.note, records, [stored.unchanged])

    def new(self, *, uses: int, days: int, note: str = "", sent_to: str = "") -> NewInvitation:
        """An invitation that does not exist yet."""
        code = self._new_code()
        now_ms = self._records.now_ms()
        expires_ms = now_ms + days * DAY_MS
        invitation = Invitation(
            invitation_id=self._records.randomness.token_hex(_ID_BYTES),
            uses=uses,
            uses_left=uses,
            created_ms=now_ms,
            note=note,
            sent_to=sent_to,
        )
        record = INVITATIONS.put(secret_key(bare_code(code)), invitation, expires_ms=expires_ms)
        return NewInvitation(code, invitation, expires_ms, record)

    async def renewed(self, invitation_id: str) -> NewInvitation:
        """The invitation with that id with another code, which replaces its former one: the code of
        an invitation that is sent is made when it is, and so stored nowhere. Raises NotFound."""

        async def compute() -> Changes[NewInvitation]:
            stored, code = await self.find(invitation_id), self._new_code()
            expires_ms = stored.expires_ms or 0
            key = secret_key(bare_code(code))
            put = INVITATIONS.put(key, stored.value, expires_ms=expires_ms)
            made = NewInvitation(code, stored.value, expires_ms, put)
            return Changes(made, [INVITATIONS.drop(stored.key), put], [stored.unchanged])

        return await self._records.transact(compute)

    def _new_code(self) -> str:
        return _code(int(self._records.randomness.token_hex(_CODE_BYTES), 16))

    async def all(self) -> Sequence[Versioned[Invitation]]:
        """Those that have not ended, the newest first."""
        now_ms = self._records.now_ms()
        listed = await INVITATIONS.page(self._records.store, now_ms=now_ms, limit=MAX_INVITATIONS)
        return sorted(listed, key=lambda each: each.value.created_ms, reverse=True)

    async def find(self, invitation_id: str) -> Versioned[Invitation]:
        """The invitation with that id. Raises NotFound."""
        for each in await self.all():
            if each.value.invitation_id == invitation_id:
                return each
        raise NotFound(StorageCodes.NO_SUCH_INVITATION, name=invitation_id)


def invitation_url(issuer: str, code: str) -> str:
    """The link that leads to the registration page with the code filled in."""
    return f"{issuer}/idp/register?invitation={code}"


def bare_code(code: str) -> str:
    """A code as it was created, however it was typed."""
    return code.strip().lower().translate(_MISREAD)


def _code(number: int) -> str:
    digits = ""
    for _ in range(_CODE_BYTES * 8 // 5):
        number, digit = divmod(number, len(_DIGITS))
        digits += _DIGITS[digit]
    return "-".join(digits[start : start + _GROUP] for start in range(0, len(digits), _GROUP))
