"""``/.pages/console/log``: what operators did, who signed in, and what was refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from podstead.idp.accounts import Accounts
from podstead.idp.administration.audit_log import KEPT_MS, AuditLog, CausedBy, LoggedEvent, Operator
from podstead.web.idp.console.access import for_operators
from podstead.web.idp.console.addresses import LOG, account_url
from podstead.web.idp.console.event_texts import event_text
from podstead.web.pages.request import PageRequest
from podstead.web.pages.site import Site
from podstead.web.pages.texts import N_, _
from podstead.web.response import Response
from podstead.web.routes import route

PAGE_SIZE: Final = 100
_DAY_MS: Final = 24 * 3600 * 1000
_TITLES: Final = {
    CausedBy.OPERATOR: N_("Operators"),
    CausedBy.PERSON: N_("Sign-ins and accounts"),
    CausedBy.REFUSED: N_("Refused"),
}


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event as a row."""

    at_ms: int
    text: str
    facts: str
    pod: str
    """The name of the pod whose account it is about; empty for none, or if it is gone."""
    account: str
    """The id of an account that is gone."""
    operator: str
    address: str


@dataclass(frozen=True, slots=True)
class LogPage:
    """Shows the log, one kind of events at a time."""

    site: Site
    log: AuditLog
    accounts: Accounts

    @route(LOG, "GET")
    @for_operators
    async def get(self, page: PageRequest, _operator: Operator) -> Response:
        """One page of the log."""
        cause = _cause(page.query_text("events"))
        stored = await self.log.newest(cause, after=page.query_text("after"), limit=PAGE_SIZE + 1)
        events = [each.value for each in stored[:PAGE_SIZE]]
        more = None
        if len(stored) > PAGE_SIZE:
            after = stored[PAGE_SIZE - 1].key
            more = f"{LOG}?{urlencode({'events': cause.value, 'after': after})}"
        pods = await self._pods(events)
        return self.site.page(
            page,
            "console/log.html",
            events=[_shown(event, pods) for event in events],
            views=[
                (f"{LOG}?events={each.value}", _(title), each is cause)
                for each, title in _TITLES.items()
            ],
            more=more,
            days=KEPT_MS // _DAY_MS,
            account_url=account_url,
        )

    async def _pods(self, events: Sequence[LoggedEvent]) -> Mapping[str, str]:
        """The names of the pods of the accounts in these events, by the ids of the accounts."""
        pods = {}
        for account_id in {event.account for event in events if event.account}:
            stored = await self.accounts.read(account_id)
            if stored is not None:
                pods[account_id] = stored.value.pod
        return pods


def _cause(text: str) -> CausedBy:
    return next((cause for cause in CausedBy if cause.value == text), CausedBy.OPERATOR)


def _shown(event: LoggedEvent, pods: Mapping[str, str]) -> ShownEvent:
    pod = pods.get(event.account, "")
    return ShownEvent(
        at_ms=event.at_ms,
        text=event_text(event.what),
        facts=", ".join(f"{name} {value}" for name, value in event.facts.items() if value != pod),
        pod=pod,
        account="" if pod else event.account,
        operator=event.operator,
        address=event.address,
    )
