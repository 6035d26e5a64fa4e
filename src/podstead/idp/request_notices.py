"""Notifies the owner of a pod by mail that somebody asks for access, if the owner wants that."""

import contextlib
from collections.abc import Callable

from podstead.core.errors import ServerTrouble
from podstead.core.identifiers import ResourcePath
from podstead.idp.accounts import Accounts
from podstead.idp.mail_queue import MailQueue, MailSubject
from podstead.storage.record_store import RecordStore


class AccessRequestMails:
    """Queues these messages."""

    def __init__(
        self,
        records: RecordStore,
        accounts: Accounts,
        *,
        link: str,
        sends_mail: Callable[[], bool],
    ) -> None:
        """``link`` is the URL of the page with the requests."""
        self._sends_mail = sends_mail
        self._records = records
        self._accounts = accounts
        self._queue = MailQueue(records)
        self._link = link

    async def asked(self, storage: ResourcePath, *, by: str, about: ResourcePath) -> None:
        """Queue a message to the owner of a storage. If that fails, the request was sent all the
        same."""
        if not self._sends_mail():
            return
        with contextlib.suppress(ServerTrouble):
            stored = await self._accounts.find(storage.strip("/"))
            account = None if stored is None else stored.value
            if account is None or account.disabled or not account.mails_requests:
                return
            facts = {"by": by, "about": about, "link": self._link}
            queued = await self._queue.to_person(MailSubject.ACCESS_REQUEST, account, facts)
            await self._records.try_commit(queued)
