"""The page of a folder's read log, the section of the sharing page that leads there, and what the
feature does in a worker."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from podstead.app.services import Services
from podstead.core import background, errors, identifiers, identity, numbers
from podstead.features import WorkerFeature
from podstead.features.read_log import ReadLogSettings
from podstead.features.read_log.recording import LOGS, ReadLog, ReadLogCodes, ReadRecorder, Reads
from podstead.resources.sharing.service import SharingState
from podstead.wac.modes import Mode
from podstead.web.browsers import json_response
from podstead.web.pages.addresses import PREFIX, breadcrumb, files_url, share_url, shown_name
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.formats import machine_time
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import REST, route

logger = logging.getLogger("podstead.read_log")

READ_LOG: Final = f"{PREFIX}/read-log"
ROWS: Final = 100
"""How many rows a page has."""
LOOK_S: Final = 3.0
LOOKS_PER_STORING: Final = 10

add_flash_messages(
    Tone.DONE,
    read_log_on=N_("From now on, it is recorded who reads what in this folder."),
    read_log_off=N_("Nothing is recorded any longer, and the log was deleted."),
)


@dataclass(frozen=True, slots=True)
class ShownReads:
    """A row of the page."""

    who: str
    application: str
    agent: str
    client: str
    name: str
    address: str
    count: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class ReadLogPage:
    """Shows the log of a folder, and switches it on and off, for those who control the folder."""

    site: Site
    services: Services
    recorder: ReadRecorder
    days: int

    @route(READ_LOG + REST, "GET")
    async def get(self, page: PageRequest) -> Response:
        folder, stored = await self._log(page)
        index = numbers.whole_number(page.query_text("page"), 99_999) or 0
        rows, more = await self._rows(page.identity, stored, index)
        if not page.wants_page:
            return json_response(200, self._json(folder, stored, rows, index + 1 if more else None))
        agents, root = [each.agent for each in rows], identifiers.storage_root(folder) or folder
        named = await self.services.pages.actor_names.of(page, root, agents)
        return self.site.page(
            page,
            "read_log/page.html",
            target=folder,
            name=shown_name(folder),
            breadcrumb=breadcrumb(folder),
            action=READ_LOG + folder,
            days=self.days,
            since_ms=None if stored is None else stored.since_s * 1000,
            rows=[
                ShownReads(
                    *named(each.agent or None, each.client),
                    each.agent,
                    each.client,
                    *_named(identifiers.ResourcePath(each.path)),
                    each.count,
                    each.last_s * 1000,
                )
                for each in rows
            ],
            more=f"{READ_LOG}{folder}?page={index + 1}" if more else None,
        )

    @route(READ_LOG + REST, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Switch the log on or off. Raises NotAuthenticated, AccessDenied, NotFound, Conflict,
        WrongFormToken, ServerTrouble."""
        sent = await page.form()
        folder, _ = await self._log(page)
        is_on = sent.text("log") == "on"
        if is_on:
            await self.recorder.switch_on(folder)
        else:
            await self.recorder.switch_off(folder)
        await self.recorder.look()
        notice = FlashMessage("read-log-on" if is_on else "read-log-off")
        return self.site.see_other(READ_LOG + folder, notice)

    async def _log(self, page: PageRequest) -> tuple[identifiers.ResourcePath, ReadLog | None]:
        """The folder, and its log if it has one."""
        page.signed_in()
        folder = page.target
        await self.services.gate.require_control(page.identity, folder)
        found = await self.services.store.read_metadata((folder,))
        if not identifiers.is_container(folder) or found[folder] is None or folder.count("/") < 2:
            raise errors.NotFound(ReadLogCodes.NO_FOLDER)
        stored = await self.recorder.records.read(LOGS, folder)
        return folder, None if stored is None else stored.value

    async def _rows(
        self, viewer: identity.Identity | None, log: ReadLog | None, index: int
    ) -> tuple[Sequence[Reads], bool]:
        """Some rows, the newest first, without those about what the viewer does not control; and
        whether there are older ones."""
        if log is None:
            return (), False
        await self.recorder.store()
        found = [
            each async for batch in self.recorder.batches(log.log_id) for each in batch.value.reads
        ]
        found.sort(key=lambda each: each.last_s, reverse=True)
        shown = found[index * ROWS : (index + 1) * ROWS]
        known: dict[str, bool] = {"": True}
        for each in shown:
            if each.path not in known:
                grant, _ = await self.services.gate.current_grant(
                    viewer, None, identifiers.ResourcePath(each.path)
                )
                known[each.path] = grant.allows(Mode.CONTROL)
        return [each for each in shown if known[each.path]], len(found) > (index + 1) * ROWS

    def _json(
        self,
        folder: identifiers.ResourcePath,
        log: ReadLog | None,
        rows: Sequence[Reads],
        more: int | None,
    ) -> Mapping[str, object]:
        base_url = self.site.base_url
        return {
            "folder": base_url + folder,
            "since": None if log is None else machine_time(log.since_s),
            "reads": [
                {
                    "agent": each.agent or None,
                    "client": each.client or None,
                    "resource": base_url + each.path if each.path else None,
                    "count": each.count,
                    "first": machine_time(each.first_s),
                    "last": machine_time(each.last_s),
                }
                for each in rows
            ],
            "next": None if more is None else f"{base_url}{READ_LOG}{folder}?page={more}",
        }


def _named(path: identifiers.ResourcePath) -> tuple[str, str]:
    """What a resource is called, and the page about it; nothing for those that are not named."""
    if identifiers.auxiliary_kind(path) is identifiers.Auxiliary.ACL:
        subject = identifiers.subject_of(path)
        return _("Access to “%(name)s”", name=shown_name(subject)), share_url(subject)
    return (shown_name(path), files_url(path)) if path else ("", "")


class ReadLogSection:
    """Leads from the sharing page of a folder to its read log."""

    template = "pods/read_log/section.html"
    line_template = ""
    list_template = template

    def shows(self, agent: str) -> bool:  # noqa: ARG002
        """No agent."""
        return False

    async def values(self, page: PageRequest, state: SharingState) -> Mapping[str, object]:  # noqa: ARG002
        """The address, for a folder."""
        target = state.access.resource
        return {"address": READ_LOG + target if identifiers.is_container(target) else ""}

    async def names(
        self,
        pod: identifiers.ResourcePath,  # noqa: ARG002
        agents: Iterable[str],  # noqa: ARG002
    ) -> Mapping[str, str]:
        """None."""
        return {}


class ReadLogInWorker(WorkerFeature):
    """Records, stores and shows reads in one worker."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._days = services.settings.of(ReadLogSettings).read_log_days
        self.read_observer = self._recorder = ReadRecorder(
            services.records, days=self._days, forget_responses=self._forget_responses
        )
        self.sharing_section = ReadLogSection()
        self._recording = background.Background(
            self._record,
            logger,
            "Reads could not be recorded",
            every_s=LOOK_S,
            again_s=LOOK_S,
            at_end=self._recorder.store,
        )
        self._looks = 0

    def _forget_responses(self) -> None:
        self._services.readings.responses.clear()

    @cached_property
    def pages(self) -> Sequence[object]:  # type: ignore[override]
        services = self._services
        return (ReadLogPage(services.pages.site, services, self._recorder, self._days),)

    async def start(self) -> None:
        await self._recorder.look()
        self._recording.start(at_once=False)

    async def stop(self) -> None:
        await self._recording.stop()

    async def sweep(self) -> None:
        await self._recorder.sweep()

    async def _record(self) -> None:
        """Look for logs, and now and then store what was read."""
        await self._recorder.look()
        self._looks += 1
        if self._looks % LOOKS_PER_STORING == 0:
            await self._recorder.store()
