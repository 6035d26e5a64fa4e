"""``/.pages/trash``: what was deleted from the pod of a person, to be restored or removed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from podstead.core.errors import BadRequest
from podstead.core.identifiers import ResourcePath, is_container, parent_container, parse_path
from podstead.features.history.keeping import Choice
from podstead.features.history.trash import DeletedItem, Trash, TrashCodes
from podstead.web.account.home import AgentNames, ChosenPod, agent_texts, chosen_pod
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission
from podstead.web.pages.addresses import PREFIX, files_url, shown_name
from podstead.web.pages.cookies import Notice, Tone, add_notices
from podstead.web.pages.formats import name_sort_key
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import route

TRASH: Final = f"{PREFIX}/trash"
CHANGE: Final = f"{TRASH}/change"
SHOWN: Final = 200
"""How many items a page shows."""

add_notices(
    Tone.DONE,
    trash_restored=N_("It has been restored."),
    trash_removed=N_("It has been deleted for good."),
    trash_days=N_("From now on, nothing is kept for longer than that."),
    trash_emptied=N_("The trash has been emptied."),
)
add_notices(
    Tone.PROBLEM, trash_partly_emptied=N_("Not everything in the trash could be deleted for good.")
)


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item as the page shows it."""

    name: str
    folder: str
    is_container: bool
    path: ResourcePath
    version: str
    size_bytes: int
    who: str
    client: str
    deleted_ms: int


_ORDERS: Final[Mapping[str, str]] = {
    "": N_("Last deleted first"),
    "name": N_("By name"),
    "size": N_("Largest first"),
    "who": N_("By person"),
}


@dataclass(frozen=True, slots=True)
class TrashPage:
    """Shows the trash of a pod, and changes it."""

    site: Site
    trash: Trash
    names: AgentNames

    @route(TRASH, "GET")
    async def get(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, NotFound, BadRequest."""
        person = page.signed_in()
        pod = chosen_pod(page, person)
        retentions = self.trash.past.retentions
        name, order = page.query_text("name").strip(), page.query_text("order")
        listed = await self.trash.items(page.identity, None, pod.root, pod.root)
        agents = [each.agent for each in listed.items]
        who = await agent_texts(page, self.site, self.names, pod.root, agents)
        shown = [_shown(each, pod, who(each.agent)) for each in listed.items]
        found = [each for each in shown if name.casefold() in each.name.casefold()]
        found.sort(key=_key_of(order))
        return self.site.page(
            page,
            "history/trash.html",
            pod=pod,
            items=found[:SHOWN],
            more=max(len(found) - SHOWN, 0),
            is_empty=not shown,
            can_empty=bool(found) or listed.others,
            name=name,
            order=order,
            orders=[(each, _(text)) for each, text in _ORDERS.items()],
            action=TRASH,
            change=CHANGE,
            undo=f"{PREFIX}/undo",
            kept=retentions.of(pod.root),
            longest=retentions.longest,
            can_choose=await self.trash.past.controls(page.identity, None, pod.root),
        )

    @route(CHANGE, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Raises NotAuthenticated, AccessDenied, NotFound, BadRequest, and what a PUT raises."""
        sent = await page.form()
        person = page.signed_in()
        pod = ChosenPod(ResourcePath(sent.text("pod")), person.pods)
        if pod.root not in person.pods:
            raise BadRequest(WebCodes.FORM_MALFORMED)
        do, address = sent.text("do"), f"{TRASH}?pod={pod.name}"
        if do == "empty":
            is_empty = await self.trash.empty(page.identity, None, pod.root, pod.root)
            notice = Notice("trash-emptied" if is_empty else "trash-partly-emptied")
            return self.site.see_other(address, notice)
        if do == "choose":
            await self._choose(page, pod.root, sent)
            return self.site.see_other(address, Notice("trash-days"))
        path, version = _path(sent.text("path")), sent.text("version")
        if do == "restore":
            item = await self.trash.item(page.identity, None, path, version)
            restored = await self.trash.restore(page.identity, None, item)
            return self.site.see_other(files_url(restored), Notice("trash-restored"))
        if do == "remove":
            await self.trash.remove(page.identity, None, path, version)
            return self.site.see_other(address, Notice("trash-removed"))
        raise BadRequest(WebCodes.FORM_MALFORMED)

    async def _choose(self, page: PageRequest, root: ResourcePath, sent: FormSubmission) -> None:
        """How long the pod keeps former states. Raises NotAuthenticated, AccessDenied,
        BadRequest."""
        past = self.trash.past
        await past.gate.require_control(page.identity, root)
        longest = past.retentions.longest
        choice = Choice(
            _days(sent.text("deleted"), longest.deleted_days),
            _days(sent.text("versions"), longest.versions_days),
        )
        await past.retentions.choose(root, choice)
        self.trash.keeper.tidy_soon(root)


def _days(text: str, longest: int) -> int | None:
    """A number of days; ``None`` for as many as the operator says. Raises BadRequest."""
    if not text and not longest:  # nothing is asked for
        return None
    if not re.fullmatch("[0-9]{1,4}", text) or int(text) > longest:
        raise BadRequest(TrashCodes.DAYS_OUT_OF_RANGE, number=longest)
    return int(text) if int(text) < longest else None


def _shown(item: DeletedItem, pod: ChosenPod, who: str) -> ShownItem:
    state = item.state
    above = parent_container(state.path) or pod.root
    return ShownItem(
        name=shown_name(state.path),
        folder=unquote(above[len(pod.root) :]).strip("/"),
        is_container=is_container(state.path),
        path=state.path,
        version=state.version,
        size_bytes=state.size_bytes,
        who=who if item.shows_agent else "",
        client=item.client or "",
        deleted_ms=state.ended_ms,
    )


def _key_of(order: str) -> Callable[[ShownItem], Any]:
    by_name = name_sort_key()
    keys: Mapping[str, Callable[[ShownItem], Any]] = {
        "name": lambda each: by_name(each.name),
        "size": lambda each: -each.size_bytes,
        "who": lambda each: (each.who, -each.deleted_ms),
    }
    return keys.get(order, lambda each: -each.deleted_ms)


def _path(text: str) -> ResourcePath:
    """Raises BadRequest."""
    if not text.isascii():
        raise BadRequest(WebCodes.FORM_MALFORMED)
    return parse_path(text.encode("ascii"))
