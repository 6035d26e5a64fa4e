"""``/.pages/console/accounts``: all pods with their accounts, and below it each of them with what
operators do with it.

What cannot be undone, and what gives somebody power over an account, is confirmed on a page of its
own and requires a recent sign-in.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Final, TypeVar
from urllib.parse import quote, urlencode

from podstead.core.errors import BadRequest, NotFound
from podstead.core.numbers import whole_number
from podstead.idp import codes, records
from podstead.idp.administration.audit_log import Operator
from podstead.idp.administration.pods import Directory, PodActions, PodWithAccount
from podstead.idp.administration.service import SIGN_IN_LINK_S, Administration, OwnAccount
from podstead.web.browsers import see_other
from podstead.web.codes import WebCodes
from podstead.web.forms import FormSubmission
from podstead.web.pages.addresses import CONSOLE, again_url, link_url
from podstead.web.pages.cookies import FlashMessage, Tone, add_flash_messages, add_refusals
from podstead.web.pages.rendering import refusal_message
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import route

ACCOUNTS: Final = f"{CONSOLE}accounts"
ACCOUNT: Final = f"{ACCOUNTS}/{{pod}}"
ACTION: Final = f"{ACCOUNT}/{{action}}"
QUOTA: Final = f"{ACCOUNT}/quota"
HEALTH: Final = f"{CONSOLE}health"
SETTINGS: Final = f"{CONSOLE}settings"
LOG: Final = f"{CONSOLE}log"
INVITATIONS: Final = f"{CONSOLE}invitations"
REVOKE: Final = f"{INVITATIONS}/{{invitation}}/revoke"


def account_url(pod: str) -> str:
    """The page about a pod and its account."""
    return f"{ACCOUNTS}/{quote(pod, safe='')}"


def action_url(pod: str, action: str) -> str:
    """The page on which an operator confirms an action."""
    return f"{account_url(pod)}/{action}"


Page = TypeVar("Page")


def for_operators(
    handler: Callable[[Page, PageRequest, Operator], Awaitable[Response]],
) -> Callable[[Page, PageRequest], Awaitable[Response]]:
    """Call a method of a page of the console for operators only."""

    @wraps(handler)
    async def guarded(self: Page, page: PageRequest) -> Response:
        person = page.person
        if person is None or not person.is_operator or person.account_id is None:
            raise NotFound(WebCodes.NO_SUCH_PAGE)
        return await handler(self, page, Operator(person.account_id, person.name, page.source))

    return guarded


def again(page: PageRequest, address: str) -> Response | None:
    """A redirect to signing in again, which leads to ``address`` afterwards; ``None`` if the
    operator has signed in recently."""
    if page.signed_in().signed_in_recently:
        return None
    return see_other(again_url("console", address))


_MB: Final = 1_000_000
_MAX_QUOTA_MB: Final = 1_000_000_000

add_flash_messages(
    Tone.DONE,
    account_disabled=N_("The account %(subject)s is disabled, and signed out everywhere."),
    account_enabled=N_("The account %(subject)s is enabled again."),
    account_signed_out=N_("%(subject)s is signed out everywhere."),
    account_promoted=N_("%(subject)s is an operator now."),
    account_demoted=N_("%(subject)s is no longer an operator."),
    quota_set=N_("The quota of %(subject)s is set."),
    account_deleted=N_("%(subject)s is deleted, with everything in the pod."),
)
add_refusals(codes.IdpCodes.OWN_ACCOUNT)


@dataclass(frozen=True, slots=True)
class Action:
    """An action that is confirmed on its own page."""

    title: str
    """With the name of the pod."""
    consequence: str
    button: str
    is_danger: bool
    done: str
    """The notice afterwards."""
    typed: bool = False
    """Whether the name of the pod must be typed."""
    allowed: Callable[[PodWithAccount], bool] = lambda listed: listed.account is not None


def _is_in_use(listed: PodWithAccount) -> bool:
    return listed.account is not None and not listed.account.disabled


def _may_promote(listed: PodWithAccount) -> bool:
    return listed.account is not None and not listed.account.operator


def _may_demote(listed: PodWithAccount) -> bool:
    return listed.account is not None and listed.account.operator


ACTIONS: Final = {
    "link": Action(
        N_("Create a one-time sign-in link for %(name)s?"),
        N_(
            "With the link, the owner chooses a new password and is signed in. It works once, "
            "within an hour. Whoever has it can take over the account: give it to nobody else, and "
            "only after you have made sure who asks. The owner sees in the account that the link "
            "was created."
        ),
        N_("Create the link"),
        is_danger=False,
        done="",
        allowed=_is_in_use,
    ),
    "disable": Action(
        N_("Disable the account %(name)s?"),
        N_(
            "The owner is signed out everywhere and cannot sign in. Applications are disconnected, "
            "and the tokens of the pod are revoked; these stay so when the account is enabled "
            "again. The pod and what it shares do not change."
        ),
        N_("Disable the account"),
        is_danger=True,
        done="account-disabled",
        allowed=_is_in_use,
    ),
    "promote": Action(
        N_("Make %(name)s an operator?"),
        N_("Operators use this console: they can change and delete every account, also yours."),
        N_("Make an operator"),
        is_danger=True,
        done="account-promoted",
        allowed=_may_promote,
    ),
    "demote": Action(
        N_("Take the console away from %(name)s?"),
        N_("The account itself does not change."),
        N_("No longer an operator"),
        is_danger=True,
        done="account-demoted",
        allowed=_may_demote,
    ),
    "delete": Action(
        N_("Delete %(name)s and everything in the pod?"),
        N_(
            "The account, the pod and all its files are deleted. This cannot be undone. The name "
            "stays reserved, because a new owner would have access wherever the old one did."
        ),
        N_("Delete for good"),
        is_danger=True,
        done="account-deleted",
        typed=True,
        allowed=lambda _listed: True,
    ),
}
"""The actions by the last segment of their addresses."""

_UNCONFIRMED: Final = {"enable": "account-enabled", "sign-out": "account-signed-out"}
"""The actions that need no confirmation, with their notices."""


@dataclass(frozen=True, slots=True)
class AccountsPage:
    """Lists pods and accounts, and finds some of them."""

    site: Site
    directory: Directory
    default_quota_bytes: Callable[[], int]
    concerns: Callable[[], Awaitable[Sequence[tuple[str, str]]]]
    """Finds what operators should look at, each with what to do about it."""

    @route(CONSOLE, "GET")
    @for_operators
    async def home(self, _page: PageRequest, _operator: Operator) -> Response:
        """What the console begins with."""
        return see_other(ACCOUNTS)

    @route(ACCOUNTS, "GET")
    @for_operators
    async def get(self, page: PageRequest, _operator: Operator) -> Response:
        """One page of the list."""
        query = page.query_text("q")
        listing = await self.directory.search(query, after=page.query_text("after"))
        more = None
        if listing.next_after:
            more = f"{ACCOUNTS}?{urlencode({'q': query, 'after': listing.next_after})}"
        return self.site.page(
            page,
            "console/accounts.html",
            query=query,
            listing=listing,
            more=more,
            concerns=() if page.request.query else await self.concerns(),
            default_quota_bytes=self.default_quota_bytes(),
            account_url=account_url,
        )


@dataclass(frozen=True, slots=True)
class AccountPage:
    """Shows a pod and its account, and carries out actions."""

    site: Site
    directory: Directory
    administration: Administration
    pods: PodActions
    default_quota_bytes: Callable[[], int]
    """Tells that of the settings, 0 for none."""

    @route(ACCOUNT, "GET")
    @for_operators
    async def get(self, page: PageRequest, operator: Operator) -> Response:
        """The page. Raises NotFound."""
        listed = await self.directory.find(page.path_segment(4))
        account = listed.account
        own = account is not None and account.account_id == operator.account_id
        return self.site.page(
            page,
            "console/account.html",
            listed=listed,
            own=own,
            resets=self.administration.resets,
            pod_url=self.site.pods_url + listed.pod.root,
            default_quota_bytes=self.default_quota_bytes(),
            own_quota_mb=(listed.pod.quota_bytes or 0) // _MB,
            url=account_url(listed.pod.name),
        )

    @route(ACTION, "GET")
    @for_operators
    async def confirm(self, page: PageRequest, _operator: Operator) -> Response:
        """The page of an action that must be confirmed. Raises NotFound."""
        listed, name = await self.directory.find(page.path_segment(4)), page.path_segment(5)
        action = self._action(name, listed)
        return again(page, action_url(listed.pod.name, name)) or self._confirmation(
            page, action, listed
        )

    @route(ACTION, "POST")
    @for_operators
    async def act(self, page: PageRequest, operator: Operator) -> Response:
        """Carry out an action. Raises NotFound, BadRequest, WrongFormToken."""
        sent = await page.form()
        listed, name = await self.directory.find(page.path_segment(4)), page.path_segment(5)
        pod, account = listed.pod.name, listed.account
        if name in _UNCONFIRMED and account is not None:
            await self._carry_out(name, listed, operator)
            return self._done(pod, _UNCONFIRMED[name])
        action = self._action(name, listed)
        signing_in = again(page, action_url(pod, name))
        if signing_in is not None:
            return signing_in
        if action.typed and sent.text("name") != pod:
            return self._confirmation(page, action, listed, mistyped=True)
        if name == "link" and account is not None:
            return await self._link(page, account, operator)
        try:
            await self._carry_out(name, listed, operator)
        except OwnAccount as error:
            return self.site.see_other(account_url(pod), refusal_message(error))
        return self._done(pod, action.done)

    @route(QUOTA, "POST")
    @for_operators
    async def set_quota(self, page: PageRequest, operator: Operator) -> Response:
        """Set the quota of the pod. Raises NotFound, BadRequest, WrongFormToken."""
        sent = await page.form()
        pod = (await self.directory.find(page.path_segment(4))).pod.name
        await self.pods.set_quota(pod, _quota(sent), operator)
        return self._done(pod, "quota-set")

    # --- parts --------------------------------------------------------------------------------

    def _action(self, name: str, listed: PodWithAccount) -> Action:
        """The action that is confirmed. Raises NotFound, BadRequest."""
        action = ACTIONS.get(name)
        for each in self.administration.resets:
            if each.name == name:
                action = Action(
                    each.question,
                    each.consequence,
                    N_("Reset"),
                    is_danger=True,
                    done=each.notice,
                    allowed=_is_in_use,
                )
        if action is None:
            raise NotFound(WebCodes.NO_SUCH_PAGE)
        if not action.allowed(listed):
            raise BadRequest(WebCodes.ACTION_NOT_POSSIBLE)
        return action

    async def _carry_out(self, name: str, listed: PodWithAccount, operator: Operator) -> None:
        account = listed.account
        if account is None:
            await self.pods.delete(listed.pod.name, operator)
            return
        await self.administration.act(name, account.account_id, operator)

    async def _link(
        self, page: PageRequest, account: records.Account, operator: Operator
    ) -> Response:
        secret = await self.administration.create_sign_in_link(account.account_id, operator)
        return self.site.page(
            page,
            "console/link_created.html",
            name=account.pod,
            link=self.site.base_url + link_url(secret),
            minutes=SIGN_IN_LINK_S // 60,
            url=account_url(account.pod),
        )

    def _confirmation(
        self, page: PageRequest, action: Action, listed: PodWithAccount, *, mistyped: bool = False
    ) -> Response:
        name = listed.pod.name
        return self.site.page(
            page,
            "console/confirm.html",
            status=400 if mistyped else 200,
            name=name,
            title=_(action.title, name=name),
            consequence=_(action.consequence),
            button_text=_(action.button),
            is_danger=action.is_danger,
            typed=action.typed,
            mistyped=mistyped,
            url=account_url(name),
        )

    def _done(self, pod: str, notice: str) -> Response:
        address = ACCOUNTS if notice == "account-deleted" else account_url(pod)
        return self.site.see_other(address, FlashMessage(notice, pod))


def _quota(sent: FormSubmission) -> int | None:
    """The quota that the form states. Raises BadRequest."""
    kind, text = sent.text("quota"), sent.text("megabytes").strip()
    if kind in ("default", "none"):
        return None if kind == "default" else 0
    megabytes = whole_number(text, _MAX_QUOTA_MB)
    if not megabytes:
        raise BadRequest(WebCodes.QUOTA_MALFORMED)
    return megabytes * _MB
