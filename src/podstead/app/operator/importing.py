"""Opens a data root for commands that read and write whole pods, beside a running server.

All imports use one service, :mod:`podstead.resources.importing.importer`; a command brings the
source.
"""

import dataclasses
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from podstead.app.adapters.bundled_contexts import build_documents
from podstead.app.adapters.foreign import ForeignDocuments
from podstead.app.adapters.root import former_base_urls
from podstead.app.adapters.system import SystemClock, SystemRandomness
from podstead.app.operator.data_root import opened_store, served_settings, settings_in_effect
from podstead.config import Settings
from podstead.core.identifiers import ResourcePath, canonical_url
from podstead.features import container_hooks, write_hooks
from podstead.pods import names, provision, template
from podstead.resources.context import WriteContext
from podstead.resources.importing.importer import TreeImporter
from podstead.resources.importing.values import ImportTarget
from podstead.resources.pod_renaming import PodRenamer
from podstead.resources.sharing.rules_index import RulesIndex
from podstead.storage.record_store import RecordStore
from podstead.storage.records import PodRecord
from podstead.web.authority import hosts_of, served_hosts

_NOT_IN_IRIS: Final = re.compile(r"[\x00-\x20<>\"{}|^`\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPods(WriteContext):
    """What commands need that read and write whole pods. ``settings`` have the base URL and the
    issuer of the data root."""

    settings: Settings

    @property
    def importer(self) -> TreeImporter:
        return TreeImporter(self, self.settings.max_body_bytes)

    @property
    def renamer(self) -> PodRenamer:
        return PodRenamer(self)

    def target(
        self, name: str, *, source_id: str, owner: str | None = None, created_ms: int | None = None
    ) -> ImportTarget:
        """A new pod of that name, which belongs to ``owner``, by default its own WebID. Raises
        UnusablePodName."""
        name = names.check_name(name)
        root = ResourcePath(f"/{name}/")
        owner = owner or provision.web_id_of(self.settings.base_url, name)
        now_ms = self.records.now_ms()
        pod = PodRecord(name, root, owner, now_ms if created_ms is None else created_ms)
        rules = template.root_acl(owner).encode()
        return ImportTarget(root=root, source_id=source_id, new_pod=pod, root_acl=rules)

    def may_own(self, web_id: str, *own_urls: str) -> bool:
        """Whether somebody who comes from elsewhere may have this WebID here: one of another
        server, or one in the pods with ``own_urls``.

        Every other WebID of this server is that of somebody else, or will be, and an account with
        it could act as that person. Those under a host alias and under former base URLs are WebIDs
        of this server, too: documents may still grant access to them, and they lead here.
        """
        document = canonical_url(web_id.partition("#")[0])
        if document is None or _NOT_IN_IRIS.search(web_id):
            return False
        if any(document.startswith(url) for url in own_urls):
            return True
        settings = self.settings
        base_url = urlsplit(settings.base_url)
        port = base_url.port or (443 if base_url.scheme == "https" else 80)
        hosts = served_hosts(settings.base_url, port=port, aliases=settings.host_aliases)
        hosts = hosts.union(*map(hosts_of, settings.former_base_urls))
        # Whatever the scheme: requests over http are redirected or answered, too.
        return urlsplit(document).netloc not in hosts


@asynccontextmanager
async def opened_pods(
    settings: Settings, *, moving_to: str | None = None
) -> AsyncIterator[OpenedPods]:
    """Open an existing data root, as if it were at the URL that it is ``moving_to``."""
    async with opened_store(settings) as store:
        settings = dataclasses.replace(
            served_settings(settings, moving_to=moving_to),
            former_base_urls=former_base_urls(settings),
        )
        clock = SystemClock()
        records = RecordStore(store, clock, SystemRandomness())
        settings = await settings_in_effect(settings, records)
        foreign = ForeignDocuments(settings, clock)
        index = RulesIndex(records, base_url=settings.base_url)
        try:
            yield OpenedPods(
                settings=settings,
                records=records,
                documents=build_documents(settings, store=store, foreign=foreign),
                quota_bytes=lambda: settings.quota_bytes,
                write_hooks=(*write_hooks(records), index),
                container_hooks=container_hooks(records),
            )
        finally:
            await foreign.close()
