"""``/.pages/notices``: what the person was told, and when that is sent by mail."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec.structs import replace

from podstead.features.notices.box import MailMode, with_read
from podstead.features.notices.delivery import NOTICES, NoticeBoxes
from podstead.web.browsers import see_other
from podstead.web.pages.addresses import SECURITY, local_address
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import route

add_flash_messages(
    Tone.DONE,
    notices_chosen=N_("Your choice was saved."),
    notice_gone=N_("This notice no longer exists."),
)

_MODES: Final = {
    MailMode.EACH: N_("Immediately"),
    MailMode.DAILY: N_("Once a day, if there is something new"),
    MailMode.NEVER: N_("Never"),
}


@dataclass(frozen=True, slots=True)
class NoticesPage:
    """Shows notices, opens them and marks them as read."""

    site: Site
    boxes: NoticeBoxes

    @route(NOTICES, "GET")
    async def get(self, page: PageRequest) -> Response:
        person = page.signed_in()
        box, root = await self.boxes.box(person), self.boxes.root(person)
        has_mail = root is not None and await self.boxes.account_of(root) is not None
        return self.site.page(
            page,
            "notices/page.html",
            action=NOTICES,
            news=self.boxes.shown(box.notices),
            waiting=page.waiting,
            delivers=has_mail
            or (self.boxes.accounts is not None and person.account_id is not None),
            has_mail=has_mail,
            modes=[(each.value, _(text), each is box.mail) for each, text in _MODES.items()],
            security=SECURITY,
            channels=[]
            if root is None
            else [(each.template, await each.facts(page, root)) for each in self.boxes.channels],
        )

    @route(NOTICES, "POST")
    async def post(self, page: PageRequest) -> Response:
        """Mark one notice as read, or all, or choose when they are sent. Raises NotAuthenticated,
        WrongFormToken, ServerTrouble."""
        sent = await page.form()
        person = page.signed_in()
        if sent.text("mail"):
            mode = next((each for each in MailMode if each.value == sent.text("mail")), None)
            if mode is not None:
                await self.boxes.change(person, lambda box: replace(box, mail=mode))
            return self.site.see_other(NOTICES, FlashMessage("notices-chosen"))
        notice_ids = None if sent.text("read") == "all" else (sent.text("read"),)
        await self.boxes.change(person, partial(with_read, notice_ids=notice_ids))
        return see_other(NOTICES)

    @route(NOTICES + "/{notice}", "GET")
    async def open(self, page: PageRequest) -> Response:
        """Mark a notice as read, and show what it is about. Its address is secret enough that no
        other site can do that. Raises NotAuthenticated, ServerTrouble."""
        person = page.signed_in()
        box = await self.boxes.box(person)
        found = next((each for each in box.notices if each.notice_id == page.segment), None)
        if found is None:
            return self.site.see_other(NOTICES, FlashMessage("notice-gone"))
        await self.boxes.change(person, partial(with_read, notice_ids=(found.notice_id,)))
        return see_other(local_address(found.address) or NOTICES)
