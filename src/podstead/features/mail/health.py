"""What ``podstead doctor``, the console and the metrics say about mail."""

import os
from collections.abc import Sequence

from podstead.app.monitoring.diagnosis import Diagnosis, good, serious, warning
from podstead.core.messages import counted
from podstead.features.mail.destination import MailDestination, MailError, MailKind
from podstead.idp.mail_queue import MailQueue
from podstead.storage.record_store import RecordStore


async def mail_findings(destination: MailDestination, records: RecordStore) -> Sequence[Diagnosis]:
    """Whether messages can be handed over, without sending one, and whether any have to wait."""
    found = [await _destination(destination)]
    waiting = (await MailQueue(records).backlog()).failing
    if waiting:
        found.append(
            warning(
                "mail-queue",
                f"{counted(waiting, 'message')} could not be sent yet.",
                "See the log of the server for the reason.",
            )
        )
    return found


async def _destination(destination: MailDestination) -> Diagnosis:
    if destination.kind is MailKind.CONSOLE:
        detail = "Messages are printed on standard error, and reach nobody."
        return warning("mail", detail, "Set mail to the URL of a mail server.")
    if destination.folder is not None:
        parent = destination.folder if destination.folder.exists() else destination.folder.parent
        if not os.access(parent, os.W_OK | os.X_OK):
            detail = f"Nothing can be written to {destination.folder}."
            return serious("mail", detail, "Change the permissions of the folder.")
        detail = f"Messages are written to {destination.folder}, and reach nobody."
        return warning("mail", detail, "Set mail to the URL of a mail server.")
    from podstead.features.mail.smtp import SmtpTransport

    server = f"{destination.host}, port {destination.port}"
    try:
        await SmtpTransport(destination).check()
    except MailError as error:
        return serious(
            "mail",
            f"The mail server {server} takes no messages: {error}.",
            "Check mail (host, port, name, password) and the certificate of the mail server.",
        )
    return good("mail", f"The mail server {server} takes messages.")
