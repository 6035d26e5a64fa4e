"""Composes messages: a subject, a text, and the same as simple HTML, in the language of the
person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from podstead.idp.audit import AuditEvent
from podstead.web import browsers, registration
from podstead.web.account.event_texts import event_text, source_text
from podstead.web.console.accounts import SETTINGS
from podstead.web.pages.formats import date_text, moment_text
from podstead.web.pages.templates import render
from podstead.web.pages.texts import ENGLISH, LANGUAGES, _, ngettext, texts_in, use_texts

_MAX_ABOUT_CHARACTERS: Final = 120


@dataclass(frozen=True, slots=True)
class MailSite:
    """The server that messages come from."""

    server_name: str
    base_url: str
    """The URL of the pages for signing in."""
    operator: registration.AboutOperator


@dataclass(frozen=True, slots=True)
class MailText:
    """A message without its headers."""

    subject: str
    text: str
    html: str
    language: str
    unsubscribe: str = ""
    """The URL of a page where the person ends such messages."""


def use_language(language: str) -> str:
    """Write what follows in a language, in English if there are no texts in it; which it is."""
    chosen = language if language in LANGUAGES else ENGLISH
    use_texts(texts_in(chosen))
    return chosen


def verification(site: MailSite, language: str, *, name: str, link: str, days: int) -> MailText:
    """The message to an address that is to be confirmed."""
    language = use_language(language)
    return _composed(
        site,
        language,
        _("Confirm your e-mail address"),
        [
            _(
                "Somebody has stated this address for the account %(name)s at %(server)s. If it "
                "was you, open this link to confirm that the address is yours:",
                name=name,
                server=site.server_name,
            )
        ],
        link=link,
        link_text=_("Confirm your e-mail address"),
        after=[
            ngettext("The link works for %(num)s day.", "The link works for %(num)s days.", days)
            % {"num": days},
            _("If it was not you, you need not do anything."),
        ],
    )


def invitation(site: MailSite, language: str, *, link: str, note: str, ends_ms: int) -> MailText:
    """The message with an invitation to create an account."""
    language = use_language(language)
    return _composed(
        site,
        language,
        _("An invitation to %(server)s", server=site.server_name),
        [
            _("You are invited to create an account at %(server)s.", server=site.server_name),
            *([note] if note else []),
        ],
        link=link,
        before_link=_("This link leads to the form:"),
        after=[
            _(
                "The invitation ends on %(date)s. Whoever has the link can use it.",
                date=date_text(ends_ms),
            ),
            _("If you do not want an account, you need not do anything."),
        ],
    )


def trial(site: MailSite, language: str) -> MailText:
    """The message with which an operator tries the settings for mail."""
    language = use_language(language)
    return _composed(
        site,
        language,
        _("Messages from %(server)s arrive", server=site.server_name),
        [_("An operator has sent this message to try the settings for mail. They work.")],
        link=f"{site.base_url}{SETTINGS}",
        before_link=_("The settings:"),
        after=[],
    )


def password_reset(
    site: MailSite, language: str, *, name: str, link: str, minutes: int
) -> MailText:
    """The message with a link for a new password."""
    language = use_language(language)
    return _composed(
        site,
        language,
        _("Choose a new password"),
        [
            _(
                "Somebody has asked for a new password for the account %(name)s at %(server)s. If "
                "it was you, open this link to choose one:",
                name=name,
                server=site.server_name,
            )
        ],
        link=link,
        link_text=_("Choose a new password"),
        after=[
            ngettext(
                "The link works once, within %(num)s minute. Give it to nobody.",
                "The link works once, within %(num)s minutes. Give it to nobody.",
                minutes,
            )
            % {"num": minutes},
            _("If it was not you, you need not do anything: your password has not changed."),
        ],
    )


def security_notice(
    site: MailSite, language: str, *, name: str, facts: Mapping[str, str]
) -> MailText:
    """The message that something has changed in how the person signs in."""
    language = use_language(language)
    what = event_text(facts.get("what", ""))
    about = facts.get("about", "")[:_MAX_ABOUT_CHARACTERS]
    return _composed(
        site,
        language,
        _("%(what)s: your account %(name)s", what=what, name=name),
        [
            _(
                "This has changed in your account %(name)s at %(server)s:",
                name=name,
                server=site.server_name,
            ),
            f"{what}: {about}" if about else what,
            *_circumstances(facts),
        ],
        link=f"{site.base_url}/idp/account",
        before_link=_("Your account, with everything that has changed:"),
        after=[_unexpected(facts)],
    )


def new_browser(site: MailSite, language: str, *, name: str, facts: Mapping[str, str]) -> MailText:
    """The message that a browser signed in that was not known."""
    language = use_language(language)
    return _composed(
        site,
        language,
        _("New sign-in to your account %(name)s", name=name),
        [
            _(
                "A browser signed in to your account %(name)s at %(server)s that had not done so "
                "before:",
                name=name,
                server=site.server_name,
            ),
            *_circumstances(facts),
        ],
        link=f"{site.base_url}/idp/account",
        before_link=_("Your account, with all browsers that are signed in:"),
        after=[_unexpected(facts)],
    )


def access_request(
    site: MailSite, language: str, *, name: str, facts: Mapping[str, str]
) -> MailText:
    """The message that somebody asks the owner of a pod for access."""
    language = use_language(language)
    return _composed(
        site,
        language,
        _("Somebody asks you for access"),
        [
            _(
                "%(who)s asks for access to %(what)s in your pod %(name)s.",
                who=facts.get("by", "")[:_MAX_ABOUT_CHARACTERS],
                what=facts.get("about", "")[:_MAX_ABOUT_CHARACTERS],
                name=name,
            )
        ],
        link=facts.get("link", site.base_url),
        before_link=_("Allow or refuse it here:"),
        after=[
            _("You get this message because you want to. Change that on the page about security.")
        ],
    )


def notices(site: MailSite, language: str, *, name: str, facts: Mapping[str, str]) -> MailText:
    """The message about what a person was told."""
    language = use_language(language)
    lines = facts.get("lines", "").split("\n")
    more, choice = int(facts.get("more", "0")), facts.get("choice", site.base_url)
    further = ngettext("And %(num)s more.", "And %(num)s more.", more) % {"num": more}
    composed = _composed(
        site,
        language,
        _("New for you in your pod %(name)s", name=name),
        [*lines, *([further] if more else [])],
        link=facts.get("link", site.base_url),
        before_link=_("All notices:"),
        after=[_("Change how often you get these messages, or turn them off:"), choice],
    )
    return replace(composed, unsubscribe=choice)


def _circumstances(facts: Mapping[str, str]) -> Sequence[str]:
    lines = [_("Time: %(time)s UTC", time=moment_text(int(facts.get("at", "0"))))]
    if facts.get("browser"):
        lines.append(_("Browser: %(browser)s", browser=browsers.browser_name(facts["browser"])))
    if facts.get("address"):
        lines.append(_("IP address: %(address)s", address=facts["address"]))
    if facts.get("by"):
        lines.append(_("By: %(by)s", by=source_text(facts["by"])))
    return lines


def _unexpected(facts: Mapping[str, str]) -> str:
    if facts.get("what") == AuditEvent.SIGN_IN_LINK_CREATED.value:
        return _("If you have not asked the operator for this, tell them.")
    return _(
        "If this was not you, sign in and change your password; all other browsers and "
        "applications are then signed out."
    )


def _composed(
    site: MailSite,
    language: str,
    subject: str,
    paragraphs: Sequence[str],
    *,
    link: str,
    after: Sequence[str],
    before_link: str = "",
    link_text: str = "",
) -> MailText:
    shown = [*paragraphs, *([before_link] if before_link else [])]
    closing = _(
        "This message was sent by %(server)s. Nobody reads replies to it.", server=site.server_name
    )
    contact = (
        _("The operator of the server: %(contact)s", contact=site.operator.contact)
        if site.operator.contact
        else ""
    )
    closings = [closing, *([contact] if contact else [])]
    text = "\n\n".join([*shown, link, *after, "--", *closings]) + "\n"
    html = render(
        "pods/mail/message.html",
        language=language,
        subject=subject,
        paragraphs=shown,
        link=link,
        link_text=link_text or link,
        after=after,
        closings=closings,
    ).decode()
    return MailText(subject, text, html, language)
