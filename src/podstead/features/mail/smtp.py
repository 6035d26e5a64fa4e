"""Hands mail to a mail server. Only this module knows the SMTP library."""

import asyncio
import contextlib
import ssl
from email.message import EmailMessage
from typing import Final, cast

import aiosmtplib

from podstead.features.mail import destination as mail_destination

TIME_LIMIT_S: Final = 30
_PERMANENT: Final = range(550, 560)


class SmtpTransport:
    """A MailTransport with one connection for each message.

    The certificate of the mail server is verified. Without TLS nothing is sent, unless the
    operator asked for that for a mail server on this machine.
    """

    def __init__(self, destination: mail_destination.MailDestination) -> None:
        self._destination = destination
        self._tls = ssl.create_default_context()

    async def send(self, message: EmailMessage, *, recipient: str) -> None:
        """Raises MailDelayed, MailRefused."""
        await self._with_connection(message, recipient)

    async def check(self) -> None:
        """Connect, sign in, and send nothing. Raises MailDelayed."""
        await self._with_connection(None, "")

    async def _with_connection(self, message: EmailMessage | None, recipient: str) -> None:
        to = self._destination
        client = _Client(
            hostname=to.host,
            port=to.port,
            username=to.user,
            password=to.password,
            use_tls=to.security is mail_destination.MailSecurity.TLS,
            start_tls=to.security is mail_destination.MailSecurity.STARTTLS,
            tls_context=None if to.security is mail_destination.MailSecurity.NONE else self._tls,
            timeout=TIME_LIMIT_S,
        )
        try:
            async with asyncio.timeout(TIME_LIMIT_S):
                await client.connect()
                if message is not None:
                    await client.send_message(message, sender=to.sender, recipients=[recipient])
                with contextlib.suppress(aiosmtplib.SMTPException):
                    await client.quit()  # the message has been taken, whatever follows
        except aiosmtplib.SMTPRecipientsRefused as error:
            codes = [each.code for each in error.recipients]
            kind = (
                mail_destination.MailRefused
                if all(code in _PERMANENT for code in codes)
                else mail_destination.MailDelayed
            )
            raise kind(f"the recipient was refused ({', '.join(map(str, codes))})") from error
        except aiosmtplib.SMTPDataError as error:
            kind = (
                mail_destination.MailRefused
                if error.code in _PERMANENT
                else mail_destination.MailDelayed
            )
            raise kind(f"the message was refused ({error.code})") from error
        except aiosmtplib.SMTPResponseException as error:
            raise mail_destination.MailDelayed(
                f"{type(error).__name__} ({error.code})", _trouble(error)
            ) from error
        except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
            raise mail_destination.MailDelayed(_reason(error), _trouble(error)) from error
        except (ValueError, UnicodeError) as error:
            raise mail_destination.MailRefused("the message cannot be sent as mail") from error
        finally:
            client.close()


class _Client(aiosmtplib.SMTP):
    def close(self) -> None:
        """The library itself calls this as well, when it cannot connect or sign in."""
        transport = self.transport
        super().close()
        if transport is not None:
            # Closing alone waits until the mail server ends TLS as well.
            cast("asyncio.WriteTransport", transport).abort()


def _reason(error: BaseException) -> str:
    """The reason for an error, without the words of the mail server or a person."""
    of_tls = _tls_error(error)
    if of_tls is not None:
        return f"TLS: {of_tls.reason or of_tls}"
    return f"{type(error).__name__}: {error}"


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    causes = (error, error.__cause__ or error.__context__)
    return next((each for each in causes if isinstance(each, ssl.SSLError)), None)


def _trouble(error: BaseException) -> mail_destination.MailTrouble:
    if _tls_error(error) is not None:
        return mail_destination.MailTrouble.TLS
    if isinstance(error, aiosmtplib.SMTPAuthenticationError):
        return mail_destination.MailTrouble.SIGN_IN
    if isinstance(error, aiosmtplib.SMTPSenderRefused):
        return mail_destination.MailTrouble.REFUSED
    return mail_destination.MailTrouble.NOT_REACHED
