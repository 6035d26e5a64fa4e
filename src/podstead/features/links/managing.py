"""The section of the sharing page where people make, pause and end links, and the links of one
worker."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from podstead.app.adapters.passwords import Argon2Passwords
from podstead.app.services import Services
from podstead.core.date_times import DAY_MS, day_of, read_day
from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, is_container
from podstead.core.numbers import whole_number
from podstead.features import WorkerFeature
from podstead.features.links import MOST_LINKS, LinkSettings, sharing_links
from podstead.features.links.visits import OPEN, LinkPages, LinkVisitors
from podstead.idp.passwords import PasswordHasher, check_password
from podstead.resources.sharing.documents import RulesChanged
from podstead.resources.sharing.service import SharingService, SharingState
from podstead.web.codes import WebCodes
from podstead.web.console.settings import SettingText, add_setting_texts
from podstead.web.files import content, documents, members
from podstead.web.forms import FormSubmission
from podstead.web.pages.addresses import PREFIX, local_address, share_url, shown_name
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.formats import day_text
from podstead.web.pages.request import PageRequest, Person
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import REST, Route, route
from podstead.web.sharing.reminders import UNUSED_MS, AccessReminder, ReminderKind, reminder_of_end

MANAGE: Final = f"{PREFIX}/sharing-links"
USUAL_DAYS: Final = 30
"""After how many days a link ends that is made by one click."""
_WEEKDAY_OF_EPOCH: Final = 3
"""1 January 1970 was a Thursday, the fourth day of a week that begins on Monday."""
_FRIDAY: Final = 4
KINDS: Final = {
    sharing_links.VIEW: N_("View"),
    sharing_links.EDIT: N_("View and edit"),
    sharing_links.ADD: N_("Only add files"),
}

add_flash_messages(
    Tone.DONE,
    link_ended=N_("The link has ended."),
    link_paused=N_("The link is paused."),
    link_resumed=N_("The link works again."),
)
add_setting_texts(
    {
        "sharing-link-max-days": SettingText(
            N_("Longest life of sharing links"),
            N_("In days, also for links that exist already. With 0, links need not end."),
            words={"0": N_("No limit")},
        ),
        "sharing-links-per-pod": SettingText(
            N_("Sharing links in one pod"),
            N_("At most 1000. Links that exist already are kept."),
        ),
    }
)


@dataclass(frozen=True, slots=True)
class ShownLink:
    """A line of the section about links."""

    link_id: str
    agent: str
    has_ended: bool
    name: str = ""
    kind: str = ""
    ends_ms: int | None = None
    paused: bool = False
    has_password: bool = False
    count: int = 0
    max_uses: int | None = None
    last_ms: int | None = None


class LinksSection:
    """The links of a resource on the page about who has access to it."""

    template = "pods/links/section.html"
    line_template = "pods/links/line.html"
    list_template = "pods/links/list.html"

    def __init__(self, links: sharing_links.SharingLinks) -> None:
        self._links = links

    def shows(self, agent: str) -> bool:
        """Whether the agent is that of a link."""
        return self._links.id_of(agent) is not None

    async def names(self, pod: ResourcePath, agents: Iterable[str]) -> Mapping[str, str]:
        """Raises StorageError."""
        found: dict[str, str] = {}
        for each in agents:
            link_id = self._links.id_of(each)
            name = None if link_id is None else await self._links.name_of(pod, link_id)
            if name is not None:
                found[each] = _("The link “%(name)s”", name=name)
        return found

    async def values(self, page: PageRequest, state: SharingState) -> Mapping[str, object]:  # noqa: ARG002
        """Raises StorageError."""
        target = state.access.resource
        named = (self._links.id_of(each.grantee.iri) for each in state.access.entries)
        kinds = [(kind, _(text)) for kind, text in KINDS.items()]
        max_days, now_ms = self._links.max_days, self._links.records.now_ms()
        return {
            "links": [
                await self._shown(state.access.inherited_from or target, each)
                for each in dict.fromkeys(filter(None, named))
            ],
            "action": MANAGE + target,
            "kinds": kinds if is_container(target) else kinds[:2],
            "inherited_from": state.access.inherited_from,
            "max_days": max_days,
            "last_day": day_of(now_ms + max_days * DAY_MS),
            "today": day_of(now_ms),
            "usual_day": day_of(now_ms + min(max_days or USUAL_DAYS, USUAL_DAYS) * DAY_MS),
            "near_days": [
                (
                    day_of(now_ms + days * DAY_MS),
                    day_text(now_ms + days * DAY_MS, "EEEE" if days < 7 else "EEEEMMMMd"),
                )
                for days in _near_days(now_ms)
                if not max_days or days <= max_days
            ],
        }

    async def _shown(self, resource: ResourcePath, link_id: str) -> ShownLink:
        records = self._links.records
        stored = await self._links.of_resource(resource, link_id)
        if stored is None:  # there is only a rule
            return ShownLink(link_id, self._links.agent_of(link_id), has_ended=True)
        uses = await records.read(sharing_links.USES, link_id)
        link, ends_s = stored.value, self._links.end_of(stored.value)
        return ShownLink(
            link_id,
            self._links.agent_of(link_id),
            has_ended=ends_s is not None and ends_s <= records.now_s(),
            name=link.name,
            kind=_(KINDS[link.kind]),
            ends_ms=None if ends_s is None else ends_s * 1000,
            paused=link.paused,
            has_password=link.password_hash is not None,
            count=0 if uses is None else uses.value.count,
            max_uses=link.max_uses,
            last_ms=None if uses is None else uses.value.last_s * 1000,
        )


@dataclass(frozen=True, slots=True)
class LinkReminders:
    """Notices about links that end, and links that nobody has opened for a year."""

    links: sharing_links.SharingLinks

    async def of(self, person: Person, *, now_ms: int) -> Sequence[AccessReminder]:
        """Raises StorageError."""
        records, found = self.links.records, list[AccessReminder]()
        for pod in person.pods:
            listed = await records.of_owner(sharing_links.LINKS, pod, limit=MOST_LINKS)
            uses = {
                each.key: each.value.last_s
                for each in await records.of_owner(sharing_links.USES, pod, limit=MOST_LINKS)
            }
            for link in listed:
                ends_s = self.links.end_of(link.value)
                used_ms = uses.get(link.key, link.value.created_s) * 1000
                ends_ms = None if ends_s is None else ends_s * 1000
                name, address = link.value.name, share_url(ResourcePath(link.value.path))
                notices = reminder_of_end(
                    ends_ms, name, address, now_ms=now_ms, made_ms=link.value.created_s * 1000
                )
                works = ends_ms is None or ends_ms > now_ms
                if not notices and works and used_ms < now_ms - UNUSED_MS:
                    notices = (AccessReminder(ReminderKind.UNUSED, name, address, used_ms),)
                if notices and await self.links.has_rule(link):
                    found += notices
        return found


@dataclass(frozen=True, slots=True)
class ManageLinks:
    """Makes, pauses and ends links, for people who may change who has access."""

    site: Site
    links: sharing_links.SharingLinks
    sharing: SharingService
    passwords: PasswordHasher

    @route(MANAGE + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        sent = await page.form()
        target = page.target
        state = await self.sharing.view(page.identity, target)
        link_id, change = sent.text("link"), sent.text("change")
        try:
            if change == "create":
                return await self._created(page, state, sent)
            if change == "end":
                await self.links.end(self.sharing, page.identity, state, link_id)
        except RulesChanged:
            return self.site.see_other(share_url(target), FlashMessage("rules-changed"))
        if change in ("pause", "resume"):
            await self.links.pause(state, link_id, paused=change == "pause")
        notices = {"end": "link-ended", "pause": "link-paused", "resume": "link-resumed"}
        if change not in notices:
            raise BadRequest(WebCodes.FORM_MALFORMED)
        back = local_address(sent.text("next")) or share_url(target)
        return self.site.see_other(back, FlashMessage(notices[change]))

    async def _created(
        self, page: PageRequest, state: SharingState, sent: FormSubmission
    ) -> Response:
        target = state.access.resource
        kind = sent.text("kind")
        if kind not in sharing_links.MODES or (
            kind == sharing_links.ADD and not is_container(target)
        ):
            raise BadRequest(WebCodes.FORM_MALFORMED)
        now_s = self.links.records.now_s()
        password_hash = None
        if sent.text("password"):
            password_hash = await self.passwords.hash(
                check_password(sent.text("password")), network=page.requester
            )
        link = sharing_links.SharingLink(
            path=target,
            kind=kind,
            name=sent.text("name").strip()[: sharing_links.MAX_NAME_CHARACTERS]
            or shown_name(target),
            created_s=now_s,
            ends_s=_end_of_day(sent.text("day") or sent.text("until"), now_s),
            max_uses=_uses(sent.text("uses")),
            password_hash=password_hash,
        )
        secret = await self.links.create(self.sharing, page.identity, state, link)
        return self.site.page(
            page,
            "links/created.html",
            target=target,
            link=link,
            kind=_(KINDS[kind]),
            ends_ms=None if link.ends_s is None else link.ends_s * 1000,
            url=f"{self.site.base_url}{OPEN}/{secret}",
        )


def _near_days(now_ms: int) -> Sequence[int]:
    """In how many days tomorrow is, and the next Friday; only one of them if they are the same."""
    weekday = (now_ms // DAY_MS + _WEEKDAY_OF_EPOCH) % 7
    return sorted({1, (_FRIDAY - weekday) % 7 or 7})


def _end_of_day(typed: str, now_s: int) -> int | None:
    """The end of a day in UTC. Raises BadRequest."""
    if not typed:
        return None
    try:
        ends_s = (read_day(typed) + DAY_MS) // 1000
    except ValueError as error:
        raise BadRequest(WebCodes.DATE_MALFORMED) from error
    if ends_s <= now_s:
        raise BadRequest(_("The end of a link must be in the future."))
    return ends_s


def _uses(typed: str) -> int | None:
    """Raises BadRequest."""
    if not typed:
        return None
    number = whole_number(typed, 9_999_999)
    if number is None:
        raise BadRequest(WebCodes.FORM_MALFORMED)
    return min(max(number, 1), sharing_links.MAX_USES)


class LinksInWorker(WorkerFeature):
    """Sharing links in one worker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._links = sharing_links.SharingLinks(
            services.records,
            base_url=services.base_url,
            keys=services.keys,
            limits=lambda: services.live.current.of(LinkSettings),
        )
        self._passwords = services.passwords or Argon2Passwords()
        self.restriction = self._links
        self.sharing_section = LinksSection(self._links)
        self.access_reminders = LinkReminders(self._links)

    @cached_property
    def pages(self) -> Sequence[object]:  # type: ignore[override]
        pages = self._services.pages
        return (ManageLinks(pages.site, self._links, pages.sharing, self._passwords),)

    @cached_property
    def routes(self) -> Sequence[Route]:  # type: ignore[override]
        services = self._services
        visitors = LinkVisitors(self._links, secure=services.base_url.startswith("https:"))
        site = Site(
            services.base_url,
            pods_url=services.base_url,
            people=visitors,
            registration=services.registration,
            randomness=services.randomness,
        )
        resources = services.resources
        return site.guard.routes(
            LinkPages(
                site,
                self._links,
                visitors,
                resources,
                members.MemberLists(resources),
                documents.DocumentContents(resources),
                services.pages.previews,
                content.RawContent(resources, services.responder),
                services.pages.archives,
                self._passwords,
            )
        )
