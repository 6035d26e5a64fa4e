"""What the feature does in one worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from podstead.app.adapters.foreign import ForeignDocuments
from podstead.authn.web_ids import LocalWebIds
from podstead.core import base64url, errors, identifiers
from podstead.features import WorkerFeature
from podstead.features.web_push import devices as web_push_devices
from podstead.features.web_push.delivery import PushSender
from podstead.web.browsers import json_response
from podstead.web.codes import WebCodes
from podstead.web.pages.addresses import AGAIN, AGAIN_REASONS, PREFIX
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages
from podstead.web.pages.notifier import Notifier, pod_of_notices
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, texts_in
from podstead.web.response import Response
from podstead.web.routes import route

if TYPE_CHECKING:
    from podstead.app.services import Services

PUSH: Final = f"{PREFIX}/push"
TESTS_PER_HOUR: Final = 10
_TEST: Final = N_("Notices arrive here.")
_ID_BYTES: Final = 8

AGAIN[web_push_devices.PURPOSE] = f"{PREFIX}/notices#push"
AGAIN_REASONS[web_push_devices.PURPOSE] = N_(
    "Confirm that it is you before your notices are shown outside of these pages."
)
add_flash_messages(
    Tone.DONE,
    push_on=N_("This browser shows notices."),
    push_off=N_("The browser no longer shows notices."),
    push_tried=N_("A notice is on its way. It can take a moment."),
)
add_flash_messages(
    Tone.PROBLEM,
    push_tried_often=N_("You have tried this often in the last hour. Wait a little."),
)


class WebPushInWorker(WorkerFeature):
    """Sends notices to browsers."""

    service_worker_scripts = ("web-push-worker.js",)

    def __init__(self, services: Services) -> None:
        self._services = services

    @cached_property
    def notice_channel(self) -> web_push_devices.Devices:  # type: ignore[override]
        return web_push_devices.Devices(self._services.records)

    @cached_property
    def _key(self) -> web_push_devices.ServerKey:
        return web_push_devices.ServerKey(self._services.records)

    @cached_property
    def sender(self) -> PushSender:
        """What sends the messages that wait."""
        services = self._services
        return PushSender(
            services.records,
            services.foreign,
            self._key,
            services.provider.accounts.accounts if services.provider else None,
            services.base_url,
            services.pages.site.server_name,
            services.notifier.address,
        )

    @cached_property
    def pages(self) -> Sequence[object]:  # type: ignore[override]
        services = self._services
        page = PushPages(
            services.pages.site,
            self.notice_channel,
            self._key,
            services.foreign,
            services.local_web_ids,
            services.notifier,
        )
        return (page,)

    async def start(self) -> None:
        self.sender.start()

    async def stop(self) -> None:
        await self.sender.stop()


@dataclass(frozen=True, slots=True)
class PushPages:
    """``/.pages/push``: adds a browser, removes one, and sends a notice to try it out."""

    site: Site
    devices: web_push_devices.Devices
    key: web_push_devices.ServerKey
    outgoing: ForeignDocuments
    web_ids: LocalWebIds
    notifier: Notifier

    @route(f"{PUSH}/key", "POST", is_page=False)
    async def get_key(self, page: PageRequest) -> Response:
        """The public key for a subscription, made if there is none. Raises NotAuthenticated,
        WrongFormToken, NotFound, ServerTrouble."""
        await page.form()
        self._root(page)
        return json_response(200, {"key": base64url.encoded(await self.key.public())})

    @route(PUSH, "POST", is_page=False)
    async def add(self, page: PageRequest) -> Response:
        """Add the browser that sends this, with the members of its subscription. People with an
        account have signed in recently. Raises NotAuthenticated, WrongFormToken, SignInAgain,
        NotFound, BadRequest, ServerTrouble."""
        sent = await page.form()
        if page.open_session is not None:
            page.recent_owner()
        identity = page.signed_in().identity
        device = web_push_devices.Device(
            endpoint=sent.text("endpoint"),
            key=sent.text("p256dh"),
            secret=sent.text("auth"),
            since_ms=self.devices.records.now_ms(),
            language=page.texts.language,
            user_agent=page.user_agent,
            token_id=identity.token_id,
        )
        if not (_is_valid(device) and await self._may_send_to(device.endpoint)):
            raise errors.BadRequest("This is not a subscription that this server can send to")
        await self.devices.add(self._root(page), device)
        return json_response(
            204, None, self.site.cookies.set_flash_message(FlashMessage("push-on"))
        )

    @route(f"{PUSH}/remove", "POST")
    async def remove(self, page: PageRequest) -> Response:
        sent = await page.form()
        await self.devices.remove(self._root(page), sent.text("device"))
        return self.site.see_other(self.notifier.address, FlashMessage("push-off"))

    @route(f"{PUSH}/try", "POST")
    async def try_out(self, page: PageRequest) -> Response:
        await page.form()
        root, records = self._root(page), self.devices.records
        if await records.take(f"push-try:{root}", capacity=TESTS_PER_HOUR, period_s=3600):
            return self.site.see_other(self.notifier.address, FlashMessage("push-tried-often"))
        mark = records.randomness.token_hex(_ID_BYTES)
        queued = await self.devices.joining(root, mark, lambda each: texts_in(each).get(_TEST))
        await records.commit(queued)
        return self.site.see_other(self.notifier.address, FlashMessage("push-tried"))

    def _root(self, page: PageRequest) -> identifiers.ResourcePath:
        root = pod_of_notices(page.signed_in(), self.web_ids)
        if root is None:
            raise errors.NotFound(WebCodes.NO_POD)
        return root

    async def _may_send_to(self, endpoint: str) -> bool:
        try:
            await self.outgoing.check_receiver(endpoint)
        except errors.OutboundError:
            return False
        return len(endpoint) <= web_push_devices.MAX_ENDPOINT_CHARACTERS


def _is_valid(device: web_push_devices.Device) -> bool:
    from podstead.features.web_push.encryption import SECRET_BYTES, is_key  # loads the ciphers

    try:
        return (
            is_key(base64url.decoded(device.key))
            and len(base64url.decoded(device.secret)) == SECRET_BYTES
        )
    except ValueError:
        return False
