"""How are the parts built that read and change resources?"""

from __future__ import annotations

from dataclasses import dataclass

from podstead.app.adapters.acl_audit import AclAudit
from podstead.config import Settings
from podstead.core.clock import Clock, Randomness
from podstead.core.identifiers import ResourcePath
from podstead.idp.nostr.profile_key_records import ProfileKeyRecords
from podstead.resources.committer import Committer
from podstead.resources.content_validation import ContentValidator
from podstead.resources.documents import Documents
from podstead.resources.identity_changes import IdentityChanges
from podstead.resources.listings import Listings
from podstead.resources.patching import Patches
from podstead.resources.reading import ResourceReader
from podstead.resources.received import BodyReceiver
from podstead.resources.rendering_cache import RenderingCache
from podstead.resources.representations import Representations
from podstead.resources.service import ResourceService
from podstead.resources.sharing.rules_index import RulesIndex
from podstead.resources.tree_operations import Trees
from podstead.resources.tree_plan import TreePlanner
from podstead.storage.capacity import StorageCapacity
from podstead.storage.protocol import PodRegistry, Store
from podstead.storage.record_store import RecordStore
from podstead.wac.gate import Gate


@dataclass(frozen=True, slots=True)
class Owners:
    """The owner of each storage, from the registry of pods."""

    pods: PodRegistry

    async def owner_of(self, storage: ResourcePath) -> str | None:
        pod = await self.pods.read_pod(storage.strip("/"))
        return pod.owner if pod is not None and pod.root == storage else None


def build_resources(
    settings: Settings,
    *,
    store: Store,
    capacity: StorageCapacity,
    gate: Gate,
    owners: Owners,
    documents: Documents,
    clock: Clock,
    randomness: Randomness,
) -> ResourceService:
    """The service of one worker."""
    renderings = RenderingCache(capacity_bytes=settings.rendering_cache_bytes)
    records = RecordStore(store, clock, randomness)
    identity_changes = IdentityChanges(documents=documents, gate=gate)
    content_validator = ContentValidator(
        store=store,
        documents=documents,
        identity_changes=identity_changes,
        write_hooks=(ProfileKeyRecords(records), RulesIndex(records, base_url=settings.base_url)),
    )
    return ResourceService(
        store=store,
        gate=gate,
        reader=ResourceReader(
            representations=Representations(documents=documents, renderings=renderings),
            listings=Listings(store=store, documents=documents, renderings=renderings),
            named_owners=owners if settings.advertise_owners else None,
        ),
        receiver=BodyReceiver(
            store=store, documents=documents, max_body_bytes=settings.max_body_bytes
        ),
        content_validator=content_validator,
        identity_changes=identity_changes,
        clock=clock,
        randomness=randomness,
        patches=Patches(documents=documents, content_validator=content_validator),
        committer=Committer(
            store=store, default_quota_bytes=settings.quota_bytes, acl_listener=AclAudit()
        ),
        capacity=capacity,
        trees=Trees(
            store=store,
            gate=gate,
            planner=TreePlanner(
                store=store,
                gate=gate,
                documents=documents,
                identity_changes=identity_changes,
                content_validator=content_validator,
            ),
            clock=clock,
            randomness=randomness,
            default_quota_bytes=settings.quota_bytes,
            base_url=settings.base_url,
            acl_listener=AclAudit(),
        ),
    )
