"""``/.pages/trash``: what was deleted from the pod of a person, to be restored or removed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

from podstead.core import identifiers
from podstead.core.errors import BadRequest
from podstead.core.numbers import whole_number
from podstead.features.history.retention import Choice
from podstead.features.history.trash import DeletedItem, Trash, TrashCodes, kept_of
from podstead.web.account.actor_names import ActorNames
from podstead.web.account.home import ChosenPod, chosen_pod
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission
from podstead.web.pages.addresses import PREFIX, files_url, shown_name
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.formats import name_sort_key
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import is_reserved, route

TRASH: Final = f"{PREFIX}/trash"
PURGE: Final = f"{PREFIX}/purge"
CHANGE: Final = f"{TRASH}/change"
SHOWN: Final = 200
"""How many items a page shows."""

add_flash_messages(
    Tone.DONE,
    trash_restored=N_("It has been restored."),
    trash_removed=N_("It has been deleted for good."),
    trash_days=N_("From now on, nothing is kept for longer than that."),
    purged=N_("Nothing of it is in the trash or among the versions any longer."),
    trash_emptied=N_("The trash has been emptied."),
)
add_flash_messages(
    Tone.PROBLEM,
    partly_purged=N_("Much of it is gone. Do it again to remove the rest."),
    trash_partly_emptied=N_("Not everything in the trash could be deleted for good."),
)


@dataclass(frozen=True, slots=True)
class ShownItem:
    """An item as the page shows it."""

    name: str
    folder: str
    is_container: bool
    path: identifiers.ResourcePath
    version: str
    size_bytes: int
    who: str
    agent: str
    application: str
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
    names: ActorNames

    @route(TRASH, "GET")
    async def get(self, page: PageRequest) -> Response:
        person = page.signed_in()
        pod = chosen_pod(page, person)
        retentions = self.trash.past.retentions
        name, order = page.query_text("name").strip(), page.query_text("order")
        listed = await self.trash.items(page.identity, None, pod.root, pod.root)
        named = await self.names.of(page, pod.root, [each.agent for each in listed.items])
        shown = [_shown(each, pod, *named(each.agent, each.client)) for each in listed.items]
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
            purge=PURGE,
            kept=retentions.of(pod.root),
            longest=retentions.longest,
            can_choose=await self.trash.past.controls(page.identity, None, pod.root),
        )

    @route(CHANGE, "POST")
    async def post(self, page: PageRequest) -> Response:
        sent = await page.form()
        person = page.signed_in()
        pod = ChosenPod(identifiers.ResourcePath(sent.text("pod")), person.pods)
        if pod.root not in person.pods:
            raise BadRequest(WebCodes.FORM_MALFORMED)
        do, address = sent.text("do"), f"{TRASH}?pod={pod.name}"
        if do == "empty":
            is_empty = await self.trash.empty(page.identity, None, pod.root, pod.root)
            notice = FlashMessage("trash-emptied" if is_empty else "trash-partly-emptied")
            return self.site.see_other(address, notice)
        if do == "choose":
            await self._choose(page, pod.root, sent)
            return self.site.see_other(address, FlashMessage("trash-days"))
        path, version = _path(sent.text("path")), sent.text("version")
        if do == "restore":
            item = await self.trash.item(page.identity, None, path, version)
            restored = await self.trash.restore(page.identity, None, item)
            return self.site.see_other(files_url(restored), FlashMessage("trash-restored"))
        if do == "remove":
            await self.trash.remove(page.identity, None, path, version)
            return self.site.see_other(address, FlashMessage("trash-removed"))
        raise BadRequest(WebCodes.FORM_MALFORMED)

    @route(PURGE, "GET")
    async def get_purge(self, page: PageRequest) -> Response:
        """Show what is kept of a resource. Raises NotAuthenticated, AccessDenied, NotFound,
        BadRequest."""
        pod = chosen_pod(page, page.signed_in())
        past, typed = self.trash.past, page.query_text("path").strip()
        await past.gate.require_control(page.identity, pod.root)
        path = self._path_in(pod.root, typed) if typed else None
        return self.site.page(
            page,
            "history/purge.html",
            pod=pod,
            typed=typed,
            path=path,
            name="" if path is None else shown_name(path),
            kept=None if path is None else await kept_of(past.records, path),
            action=PURGE,
            trash=f"{TRASH}?pod={pod.name}",
        )

    @route(f"{PURGE}/all", "POST")
    async def post_purge(self, page: PageRequest) -> Response:
        """Remove all of it. Raises NotAuthenticated, AccessDenied, BadRequest."""
        sent = await page.form()
        person = page.signed_in()
        pod = ChosenPod(identifiers.ResourcePath(sent.text("pod")), person.pods)
        if pod.root not in person.pods or sent.text("sure") != "yes":
            raise BadRequest(WebCodes.FORM_MALFORMED)
        await self.trash.past.gate.require_control(page.identity, pod.root)
        path = self._path_in(pod.root, sent.text("path"))
        is_gone = await self.trash.purge(page.identity, path)
        query = urlencode({"pod": pod.name, **({} if is_gone else {"path": path})})
        return self.site.see_other(
            f"{PURGE}?{query}", FlashMessage("purged" if is_gone else "partly-purged")
        )

    def _path_in(self, root: identifiers.ResourcePath, typed: str) -> identifiers.ResourcePath:
        """From a URL, a path of the server, or a name in the pod. Raises BadRequest."""
        text = typed.removeprefix(self.site.base_url)
        if not text.startswith("/"):
            text = root + text
        path = identifiers.parse_path(quote(text, safe="/%").encode("ascii"))
        if identifiers.storage_root(path) != root or is_reserved(path):
            raise BadRequest(TrashCodes.NOT_IN_POD)
        return path

    async def _choose(
        self, page: PageRequest, root: identifiers.ResourcePath, sent: FormSubmission
    ) -> None:
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
    days = whole_number(text, longest)
    if days is None:
        raise BadRequest(TrashCodes.DAYS_OUT_OF_RANGE, number=longest)
    return days if days < longest else None


def _shown(item: DeletedItem, pod: ChosenPod, who: str, application: str) -> ShownItem:
    state = item.state
    above = identifiers.parent_container(state.path) or pod.root
    return ShownItem(
        name=shown_name(state.path),
        folder=unquote(above[len(pod.root) :]).strip("/"),
        is_container=identifiers.is_container(state.path),
        path=state.path,
        version=state.version,
        size_bytes=state.size_bytes,
        who=who if item.shows_agent else "",
        agent=item.agent or "",
        application=application,
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


def _path(text: str) -> identifiers.ResourcePath:
    """Raises BadRequest."""
    if not text.isascii():
        raise BadRequest(WebCodes.FORM_MALFORMED)
    return identifiers.parse_path(text.encode("ascii"))
