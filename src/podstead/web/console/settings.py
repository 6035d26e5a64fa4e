"""``/.pages/console/settings``: all settings, and below it a page for each of those that operators
change while the server runs.

Who has a session of an operator only must not change where links for new passwords are sent, so a
change requires a recent sign-in. Values of secrets are never shown again.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import quote

from podstead.core.errors import BadRequest, Conflict, NotFound
from podstead.idp.administration import audit_log
from podstead.idp.audit import AuditEvent
from podstead.web.codes import WebCodes
from podstead.web.console.accounts import SETTINGS, again, for_operators
from podstead.web.forms import FormSubmission
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.rendering import refusal_text
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import route

SETTING: Final = f"{SETTINGS}/{{setting}}"
_CHANGES_READ: Final = 1000
_CHANGES_SHOWN: Final = 20

add_flash_messages(
    Tone.DONE,
    setting_changed=N_(
        "The setting has been changed. All parts of the server follow within seconds."
    ),
)
add_flash_messages(
    Tone.PROBLEM,
    setting_fixed=N_("The configuration of the server sets this, so it cannot be changed here."),
)


@dataclass(frozen=True, slots=True)
class SettingText:
    """What the console says of a setting that operators change there, in English."""

    title: str
    hint: str
    choices: Mapping[str, str] = field(default_factory=dict)
    """The text of each possible value, in place of a field."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Texts for some of the values that are typed, such as 0."""


_TEXTS: Final[dict[str, SettingText]] = {
    "registration": SettingText(
        N_("Who can create an account"),
        N_("Whoever has an account already keeps it."),
        {
            "open": N_("Everybody"),
            "invited": N_("Whoever has an invitation"),
            "closed": N_("Nobody; operators create accounts"),
        },
    ),
    "quota-bytes": SettingText(
        N_("Space for each pod"),
        N_("For all pods without a quota of their own, such as 500M or 5G; 0 for no limit."),
        words={"0": N_("No limit")},
    ),
    "operator-name": SettingText(
        N_("Name of the operator"),
        N_("Who runs this server, as shown on its first page."),
    ),
    "operator-contact": SettingText(
        N_("Contact of the operator"),
        N_("An e-mail address or a web address, for people who need help. Everybody can see it."),
    ),
}


def add_setting_texts(texts: Mapping[str, SettingText]) -> None:
    """Add the texts for settings of a feature, by their names."""
    _TEXTS.update(texts)


class SettingForm:
    """The form of a setting for which one field is not enough."""

    template: str

    def facts(self, stored: str) -> Mapping[str, object]:
        """What the template shows; ``stored`` is empty if nothing is."""
        raise NotImplementedError

    def text(self, sent: FormSubmission, stored: str) -> str:
        """The value that the form states. Raises BadRequest."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting. ``source`` names what set it, as the operator wrote it; it is empty for a
    default and for a stored value. Secrets have no ``value``."""

    name: str
    value: str | None
    source: str
    meaning: str
    is_live: bool = False
    is_stored: bool = False
    stored: str = field(default="", repr=False)
    """The value that is stored, also of a secret: never for a page."""
    by: str = ""
    at_ms: int = 0

    @property
    def text(self) -> SettingText:
        return _text_of(self.name)

    @property
    def url(self) -> str:
        """The page on which it is changed."""
        return f"{SETTINGS}/{quote(self.name, safe='')}"

    @property
    def shown_value(self) -> str:
        """The value in the language of the page, where it has a text."""
        if self.value is None:
            return _("set") if self.source or self.is_stored else _("none")
        word = {**self.text.choices, **self.text.words, "": N_("none")}.get(self.value)
        return self.value if word is None else _(word)


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """The settings of one section of the reference."""

    title: str
    settings: Sequence[ShownSetting]


class SettingChanger(Protocol):
    """Stores settings (:class:`podstead.app.live_settings.SettingChanges`)."""

    async def change(
        self, name: str, text: str | None, by: audit_log.Operator | None = None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A change of a setting, as the log has it."""

    at_ms: int
    title: str
    before: str
    after: str
    by: str


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """Shows the settings, and changes those that can be changed here."""

    site: Site
    groups: Callable[[], Sequence[SettingGroup]]
    changer: SettingChanger
    look: Callable[[], Awaitable[None]]
    """Lets this worker see what has changed."""
    log: audit_log.AuditLog
    forms: Mapping[str, SettingForm]

    @route(SETTINGS, "GET")
    @for_operators
    async def get(self, page: PageRequest, _operator: audit_log.Operator) -> Response:
        """The list."""
        groups = self.groups()
        live = [each for group in groups for each in group.settings if each.is_live]
        return self.site.page(
            page, "console/settings.html", groups=groups, live=live, changes=await self._changes()
        )

    @route(SETTING, "GET")
    @for_operators
    async def form(self, page: PageRequest, _operator: audit_log.Operator) -> Response:
        """The page of one setting. Raises NotFound."""
        setting = self._find(page)
        return again(page, setting.url) or self._form(page, setting)

    @route(SETTING, "POST")
    @for_operators
    async def change(self, page: PageRequest, operator: audit_log.Operator) -> Response:
        """Change a setting. Raises NotFound, BadRequest, WrongFormToken."""
        sent = await page.form()
        setting = self._find(page)
        signing_in = again(page, setting.url)
        if signing_in is not None:
            return signing_in
        form = self.forms.get(setting.name)
        try:
            text = None
            if sent.text("change") != "default":
                text = form.text(sent, setting.stored) if form else sent.text("value").strip()
            await self.changer.change(setting.name, text or None, operator)
        except Conflict:
            return self.site.see_other(SETTINGS, FlashMessage("setting-fixed"))
        except BadRequest as error:
            return self._form(page, setting, typed=sent, error=refusal_text(error))
        await self.look()
        return self.site.see_other(SETTINGS, FlashMessage("setting-changed"))

    def _find(self, page: PageRequest) -> ShownSetting:
        name = page.path_segment(4)
        for group in self.groups():
            for each in group.settings:
                if each.name == name and each.is_live and not each.source:
                    return each
        raise NotFound(WebCodes.NO_SUCH_PAGE)

    def _form(
        self,
        page: PageRequest,
        setting: ShownSetting,
        *,
        typed: FormSubmission | None = None,
        error: str = "",
    ) -> Response:
        form = self.forms.get(setting.name)
        value = typed.text("value") if typed else setting.stored or setting.value or ""
        return self.site.page(
            page,
            "console/setting.html",
            status=400 if error else 200,
            setting=setting,
            value=value if setting.value is not None else "",
            error=error,
            part=form and form.template,
            facts=form.facts(setting.stored) if form else {},
            typed=typed,
            url=SETTINGS,
        )

    async def _changes(self) -> Sequence[SettingChange]:
        logged = await self.log.newest(audit_log.CausedBy.OPERATOR, limit=_CHANGES_READ)
        found = [
            each.value for each in logged if each.value.what == AuditEvent.SETTING_CHANGED.value
        ]
        return [
            SettingChange(
                at_ms=each.at_ms,
                title=_text_of(each.facts.get("setting", "")).title,
                before=each.facts.get("from", ""),
                after=each.facts.get("to", ""),
                by=each.operator,
            )
            for each in found[:_CHANGES_SHOWN]
        ]


def _text_of(name: str) -> SettingText:
    return _TEXTS.get(name) or SettingText(name, "")
