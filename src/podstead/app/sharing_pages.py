"""How are the pages built on which people share?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.app.resources import Owners
from podstead.core.clock import Clock, Randomness
from podstead.resources.documents import Documents
from podstead.resources.service import ResourceService
from podstead.resources.sharing.access_requests import AccessRequests, RequestNotices
from podstead.resources.sharing.contacts import Contacts
from podstead.resources.sharing.group_names import GroupNames
from podstead.resources.sharing.people import EmailOwners, PeopleDirectory
from podstead.resources.sharing.service import SharingService
from podstead.resources.sharing.shared import SharedLists
from podstead.resources.sharing.stored_answers import StoredAnswers
from podstead.resources.sharing.waiting_requests import WaitingRequests
from podstead.storage.protocol import Store
from podstead.storage.record_store import RecordStore
from podstead.wac.gate import Gate
from podstead.web.pod_pages.guard import PageGuard
from podstead.web.pod_pages.rendering import PageRenderer
from podstead.web.pod_pages.shared.shared_page import SharedPage
from podstead.web.pod_pages.sharing.request_pages import AskPage, RequestsPage
from podstead.web.pod_pages.sharing.routes import SharingPages
from podstead.web.pod_pages.sharing.sentences import Names, NamesByReader
from podstead.web.pod_pages.sharing.share_page import SharePage
from podstead.web.pod_pages.sharing.why_page import WhyPage


@dataclass(frozen=True, slots=True)
class SharingParts:
    """What sharing is built from, besides the service that carries out operations."""

    documents: Documents
    store: Store
    gate: Gate
    owners: Owners
    emails: EmailOwners
    stored_answers: StoredAnswers
    notices: RequestNotices | None
    clock: Clock
    randomness: Randomness


def build_sharing_pages(
    parts: SharingParts,
    *,
    base_url: str,
    resources: ResourceService,
    guard: PageGuard,
    renderer: PageRenderer,
) -> SharingPages:
    """The pages of one worker."""
    sharing = SharingService(
        resources=resources,
        documents=parts.documents,
        store=parts.store,
        gate=parts.gate,
        owners=parts.owners,
        randomness=parts.randomness,
    )
    requests = AccessRequests(
        base_url=base_url,
        resources=resources,
        documents=parts.documents,
        store=parts.store,
        counters=parts.store,
        gate=parts.gate,
        owners=parts.owners,
        clock=parts.clock,
        stored_answers=parts.stored_answers,
        notices=parts.notices,
    )
    people = PeopleDirectory(
        base_url=base_url,
        resources=resources,
        documents=parts.documents,
        pods=parts.store,
        emails=parts.emails,
        counters=parts.store,
        clock=parts.clock,
    )
    names = NamesByReader(base_url, GroupNames(base_url, resources, parts.documents))
    return SharingPages(
        share=SharePage(
            sharing=sharing,
            people=people,
            requests=requests,
            contacts=Contacts(base_url, resources, parts.documents),
            names=names,
            guard=guard,
            renderer=renderer,
        ),
        why=WhyPage(sharing=sharing, people=people, names=names, renderer=renderer),
        ask=AskPage(requests=requests, guard=guard, renderer=renderer),
        shared=SharedPage(
            lists=shared_lists(parts, base_url), requests=requests, names=names, renderer=renderer
        ),
        requests=RequestsPage(
            requests=requests,
            waiting=WaitingRequests(requests, parts.store),
            sharing=sharing,
            names=Names(base_url),
            guard=guard,
            renderer=renderer,
        ),
    )


def shared_lists(parts: SharingParts, base_url: str) -> SharedLists:
    """What people share with each other."""
    return SharedLists(
        base_url=base_url,
        records=RecordStore(parts.store, parts.clock, parts.randomness),
        store=parts.store,
        gate=parts.gate,
        owners=parts.owners,
    )
