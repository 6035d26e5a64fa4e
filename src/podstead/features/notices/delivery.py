"""Takes what people are told, keeps it, and queues messages about it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from podstead.authn.web_ids import LocalWebIds
from podstead.core.date_times import DAY_MS
from podstead.core.errors import ServerTrouble
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.features.notices import box as notices_box
from podstead.idp.mail_queue import MailQueue, MailSubject
from podstead.idp.records import Account
from podstead.resources.sharing.offers import MAX_MESSAGE_CHARS
from podstead.storage.record_store import Changes, RecordStore, Versioned
from podstead.storage.records import Precondition, Record
from podstead.web.pages import notifier
from podstead.web.pages.addresses import PREFIX
from podstead.web.pages.request import Person
from podstead.web.pages.texts import ENGLISH, LANGUAGES, Texts, current_texts, texts_in
from podstead.web.sharing.views import Names

if TYPE_CHECKING:  # loaded for the provider only
    from podstead.idp.accounts import Accounts

logger = logging.getLogger("podstead.notices")

NOTICES: Final = f"{PREFIX}/notices"
CHOICE: Final = f"{NOTICES}#mail"
"""Where a person chooses when notices are sent."""
TOLD_PER_DAY: Final = 40
"""How often one sender may tell one person something in a day."""
MAILS_PER_DAY: Final = 10
"""How many notices are sent to a person one by one in a day; the rest wait for the message of the
day."""
MAX_LINES: Final = 20
"""How many notices one message names."""
DIGEST_HOUR: Final = 6
"""At which hour of the day, in UTC, the messages of the day are due."""
_HOUR_MS: Final = 3_600_000
_DAY_S: Final = 86_400
_BATCH: Final = 50
_ID_BYTES: Final = 8
_MAX_NAME_CHARACTERS: Final = 60
_LIKE_AN_ADDRESS: Final = re.compile(r"[/@:]|www\.", re.IGNORECASE)


def next_digest_ms(now_ms: int) -> int:
    """When the next message of the day is due."""
    today_ms = now_ms - now_ms % DAY_MS + DIGEST_HOUR * _HOUR_MS
    return today_ms if today_ms > now_ms else today_ms + DAY_MS


@dataclass(frozen=True, slots=True)
class NoticeBoxes(notifier.Notifier):
    """The boxes of all people (:class:`Notifier`).

    ``read_accounts`` tells those that get messages, ``None`` if none are delivered. ``channels``
    are further ways to people.
    """

    records: RecordStore
    web_ids: LocalWebIds
    base_url: str
    read_accounts: Callable[[], Accounts | None]
    channels: Sequence[notifier.NoticeChannel] = ()

    address = NOTICES

    @property
    def accounts(self) -> Accounts | None:
        return self.read_accounts()

    # --- what people are told -----------------------------------------------------------------

    async def tell(self, person: str, notice: notifier.PersonNotice) -> None:
        """As :class:`Notifier` says."""
        try:
            root = await self._root_of(person)
            if root is not None:
                await self._keep(root, notice)
        except ServerTrouble:
            logger.exception("A notice could not be stored")

    async def _root_of(self, web_id: str) -> ResourcePath | None:
        """The pod that a WebID of this server belongs to."""
        path = self.web_ids.path_of(web_id) if self.web_ids.holds(web_id) else None
        root = None if path is None else storage_root(path)
        pod = None if root is None else await self.records.store.read_pod(root.strip("/"))
        return root if pod is not None and (pod.root, pod.owner) == (root, web_id) else None

    async def _keep(self, root: ResourcePath, notice: notifier.PersonNotice) -> None:
        new = notices_box.KeptNotice(
            notice_id=self.records.randomness.token_hex(_ID_BYTES),
            kind=notice.kind.name,
            at_ms=self.records.now_ms(),
            address=notice.address,
            name=_plain(notice.name, notifier.MAX_NAME_CHARACTERS),
            by=self._stored_iri(notice.by),
            message=_plain(notice.message, MAX_MESSAGE_CHARS),
        )

        def is_told(box: notices_box.NoticeBox) -> bool:
            known = box.find(new.about)
            return known is not None and new.at_ms - known.at_ms < notice.kind.again_ms

        def is_mailed(box: notices_box.NoticeBox) -> bool:
            known = box.find(new.about)
            return known is not None and known.is_mailed and not known.is_read

        before, _ = await self._read(root)
        if is_told(before):
            return
        # What the server itself says, others cannot repeat at will, and the box is limited.
        if new.by and not await self._may(
            f"notice:{root}:{notices_box.sender_of(new.by)}", TOLD_PER_DAY
        ):
            return
        account = await self.account_of(root) if notice.kind.is_mailed else None
        may_mail = (
            account is not None
            and before.mail is notices_box.MailMode.EACH
            and not is_mailed(before)
            and await self._may(f"notice-mail:{root}", MAILS_PER_DAY)
        )

        async def compute() -> Changes[None]:
            box, preconditions = await self._read(root)
            if is_told(box):
                return Changes(None)
            told, messages = new, list[Record]()
            if account is not None and box.mail is not notices_box.MailMode.NEVER:
                was_mailed = box.mail is notices_box.MailMode.EACH and is_mailed(box)
                if box.mail is notices_box.MailMode.EACH and may_mail and not was_mailed:
                    messages += await self._message(account, [new])
                if was_mailed or messages:
                    told = replace(new, is_mailed=True)
                else:
                    messages.append(_digest(root, new.at_ms))
            messages += await self._for_channels(root, box, new)
            put = notices_box.NOTICE_BOXES.put(root, notices_box.with_notice(box, told), owner=root)
            return Changes(None, [put, *messages], preconditions)

        await self.records.transact(compute)

    async def _for_channels(
        self, root: ResourcePath, box: notices_box.NoticeBox, new: notices_box.KeptNotice
    ) -> Sequence[Record]:
        """What queues a notice for further ways to the person, who is not told twice of what they
        have not read."""
        known = box.find(new.about)
        if known is not None and not known.is_read:
            return ()

        def say(language: str) -> str:
            return self._text(replace(new, name=_for_mail(new.name)), texts_in(language)) or ""

        return [
            record
            for each in self.channels
            for record in await each.joining(root, new.notice_id, say)
        ]

    async def _may(self, key: str, per_day: int) -> bool:
        return await self.records.take(key, capacity=per_day, period_s=_DAY_S) is None

    def _stored_iri(self, iri: str) -> str:
        return iri.removeprefix(self.base_url) if iri.startswith(f"{self.base_url}/") else iri

    # --- what people see and choose -----------------------------------------------------------

    def root(self, person: Person) -> ResourcePath | None:
        """The pod whose box is the person's: that of the WebID, or else the first one."""
        return notifier.pod_of_notices(person, self.web_ids)

    async def box(self, person: Person) -> notices_box.NoticeBox:
        """The box of a person. Raises StorageError."""
        root = self.root(person)
        return notices_box.NoticeBox() if root is None else (await self._read(root))[0]

    async def change(
        self, person: Person, change: Callable[[notices_box.NoticeBox], notices_box.NoticeBox]
    ) -> None:
        """Change the box of a person. Raises ServerTrouble."""
        root = self.root(person)
        if root is None:
            return

        async def compute() -> Changes[None]:
            box, preconditions = await self._read(root)
            after = change(box)
            if after == box:
                return Changes(None)
            return Changes(
                None, [notices_box.NOTICE_BOXES.put(root, after, owner=root)], preconditions
            )

        await self.records.transact(compute)

    async def unread(self, person: Person, *, opened: str) -> int:
        unread = (await self.box(person)).unread
        there = {each.notice_id for each in unread if each.by and each.address == opened}
        if there:
            try:
                await self.change(person, partial(notices_box.with_read, notice_ids=there))
            except ServerTrouble:  # such as a full disk, which keeps nobody from reading
                return len(unread)
        return len(unread) - len(there)

    async def newest_unread(
        self, person: Person, *, limit: int
    ) -> Sequence[notifier.ShownPersonNotice]:
        return self.shown((await self.box(person)).unread)[:limit]

    def shown(
        self, notices: Sequence[notices_box.KeptNotice]
    ) -> Sequence[notifier.ShownPersonNotice]:
        """Notices as pages show them, in the language of the page."""
        texts = current_texts()
        return [
            notifier.ShownPersonNotice(
                each.notice_id,
                text,
                each.message,
                f"{NOTICES}/{each.notice_id}",
                each.at_ms,
                is_unread=not each.is_read,
                by=(by := self._by(each)),
                who=Names(self.base_url).iri(by) if by else "",
            )
            for each in notices
            if (text := self._text(each, texts)) is not None
        ]

    def _text(self, notice: notices_box.KeptNotice, texts: Texts) -> str | None:
        """What a notice says; ``None`` if what defined its kind is not there any more."""
        kind = notifier.PERSON_NOTICE_KINDS.get(notice.kind)
        if kind is None:
            return None
        who = Names(self.base_url).iri(self._by(notice))
        return texts.get(kind.text) % {"who": who, "name": notice.name}

    def _by(self, notice: notices_box.KeptNotice) -> str:
        """The IRI of whoever did it; empty for the server itself."""
        return self.base_url + notice.by if notice.by.startswith("/") else notice.by

    async def _read(
        self, root: ResourcePath
    ) -> tuple[notices_box.NoticeBox, Sequence[Precondition]]:
        stored: Versioned[notices_box.NoticeBox] | None = await self.records.read(
            notices_box.NOTICE_BOXES, root
        )
        if stored is None:
            return notices_box.NoticeBox(), [notices_box.NOTICE_BOXES.absent(root)]
        return stored.value, [stored.unchanged]

    # --- messages -----------------------------------------------------------------------------

    async def account_of(self, root: ResourcePath) -> Account | None:
        """The account of a pod, if its owner can be reached by mail. Raises StorageError."""
        accounts = self.accounts
        stored = None if accounts is None else await accounts.find(root.strip("/"))
        account = None if stored is None else stored.value
        if account is None or account.disabled or account.confirmed_email is None:
            return None
        return account

    async def _message(
        self, account: Account, notices: Sequence[notices_box.KeptNotice]
    ) -> Sequence[Record]:
        """What queues a message; nothing if too many wait."""
        texts = texts_in(account.language if account.language in LANGUAGES else ENGLISH)
        lines = [self._text(replace(each, name=_for_mail(each.name)), texts) for each in notices]
        named = [each for each in lines if each is not None]
        if not named:
            return ()
        facts = {
            "lines": "\n".join(named[:MAX_LINES]),
            "more": str(max(0, len(named) - MAX_LINES)),
            "link": self.base_url + NOTICES,
            "choice": self.base_url + CHOICE,
        }
        return await MailQueue(self.records).to_person(MailSubject.NOTICES, account, facts)

    async def send_digests(self) -> None:
        """Queue the messages of the day that are due. The write that queues one removes what said
        that it is due, so one of all workers does it. Raises ServerTrouble."""
        now_ms = self.records.now_ms()
        while True:
            page = await notices_box.DIGESTS.page(self.records.store, now_ms=now_ms, limit=_BATCH)
            due = [each for each in page if int(each.key.partition(".")[0]) <= now_ms]
            for each in due:
                await self._send_digest(each)
            if len(due) < _BATCH:
                return

    async def _send_digest(self, due: Versioned[notices_box.DueDigest]) -> None:
        root = ResourcePath(due.key.partition(".")[2])
        box, preconditions = await self._read(root)
        records: list[Record] = [notices_box.DIGESTS.drop(due.key)]
        account = await self.account_of(root)
        if account is not None and box.mail is not notices_box.MailMode.NEVER:
            new = [each for each in box.unread if not each.is_mailed and _is_for_mail(each)]
            message = await self._message(account, new)
            if message:
                notices = tuple(replace(each, is_mailed=True) for each in box.notices)
                records += (
                    *message,
                    notices_box.NOTICE_BOXES.put(root, replace(box, notices=notices), owner=root),
                )
            elif new:  # too many messages wait
                records.append(_digest(root, self.records.now_ms()))
        # If that fails, another worker does it, or the box has changed: then the next sweep does.
        await self.records.try_commit(records, [due.unchanged, *preconditions])


def _digest(root: ResourcePath, now_ms: int) -> Record:
    return notices_box.DIGESTS.put(
        f"{next_digest_ms(now_ms):015d}.{root}", notices_box.DueDigest(), owner=root
    )


def _is_for_mail(notice: notices_box.KeptNotice) -> bool:
    kind = notifier.PERSON_NOTICE_KINDS.get(notice.kind)
    return kind is not None and kind.is_mailed


def _plain(text: str, characters: int) -> str:
    """A text on one line, without characters that cannot be seen."""
    line = " ".join(text.split())
    return "".join(each for each in line if each.isprintable())[:characters]


def _for_mail(name: str) -> str:
    """A name as messages have it: none that looks like an address, since strangers choose the names
    of what they share, and a mail program would make a link of it."""
    is_plain = len(name) <= _MAX_NAME_CHARACTERS and not _LIKE_AN_ADDRESS.search(name)
    return name if is_plain else "…"
