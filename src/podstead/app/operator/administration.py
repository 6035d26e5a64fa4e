"""An open data root with what operators administer in it, beside a running server.

The server sees each change with its next request. No password of an account is required: whoever
may write to the data root is the operator. The keys of the provider are opened without the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from podstead.app.adapters.audit import operator_audit
from podstead.app.adapters.engine import has_records, key_storage
from podstead.app.adapters.keys import token_policy
from podstead.app.adapters.provider_keys import KeyFolder
from podstead.app.adapters.root import remembered_issuer, remembered_provider, store_issuer
from podstead.app.adapters.system import SystemClock
from podstead.app.live_settings import SettingChanges, live_rows, read_stored
from podstead.app.operator import data_root
from podstead.app.operator.importing import OpenedPods, opened_pods
from podstead.config import Settings, StartRefused
from podstead.core.clock import Clock
from podstead.core.errors import Conflict, NotFound, RootUnusable, StorageError
from podstead.features import credential_records, folders
from podstead.idp.account_creation import PodPlan
from podstead.idp.administration.pods import PodActions, existing_pod
from podstead.idp.administration.service import InvitationActions
from podstead.idp.audit import Audit, AuditEvent
from podstead.idp.keys import ALGORITHMS, ProviderKey, ProviderKeySet
from podstead.idp.records import GRANTS, LAST_SIGN_INS, USERNAMES, name_key
from podstead.pods.names import check_name
from podstead.pods.provision import IssuedToken, PlannedPod, PodProvisioner, issue_and_record
from podstead.resources import pod_renaming, trees
from podstead.resources.importing.values import UNFINISHED_IMPORTS
from podstead.storage.invitations import invitation_url
from podstead.storage.pods import each_pod, revocations
from podstead.storage.record_store import RecordStore
from podstead.storage.records import PodRecord, Record, ResourceKind, TokenRecord
from podstead.wac.sharing.index import MENTIONS, agent_prefix
from podstead.web.pages.addresses import link_url

if TYPE_CHECKING:
    from podstead.app.accounts import AccountServices
    from podstead.idp.administration.service import Administration


_RESOURCES_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class ListedPod:
    """A pod, what it is charged for, whether it has an account, and whether an import into it was
    interrupted. ``last_use_s`` is when somebody last signed in to the account, or an application
    used it."""

    record: PodRecord
    used_bytes: int
    has_account: bool
    is_unfinished: bool = False
    last_use_s: int | None = None


@dataclass(frozen=True, slots=True)
class PodSize:
    """What is in a pod. ``used_bytes`` is what its quota is charged for: the documents and a fixed
    amount for each resource, repositories, and what was replaced or deleted a moment ago.
    ``quota_bytes`` is 0 for none."""

    name: str
    documents: int
    containers: int
    access_rules: int
    descriptions: int
    content_bytes: int
    used_bytes: int
    quota_bytes: int


@dataclass(frozen=True, slots=True)
class PodAdministration:
    """Lists pods, and does with one what its name says."""

    settings: Settings
    records: RecordStore
    actions: PodActions

    async def list(self) -> Sequence[ListedPod]:
        """All pods, by name."""
        store = self.records.store
        return [
            ListedPod(
                pod,
                await store.used_bytes(pod.name),
                account_id is not None,
                await self.records.read(UNFINISHED_IMPORTS, pod.root) is not None,
                None if account_id is None else await self._last_use_s(account_id),
            )
            async for pod in each_pod(store)
            for account_id in [await self._account_id(pod)]
        ]

    async def find(self, name: str) -> PodRecord:
        """A pod that has no account. Raises NotFound, Conflict, StorageError."""
        pod = await existing_pod(self.records.store, name)
        if await self._account_id(pod) is not None:
            raise Conflict(
                f"The pod '{pod.name}' has an account. To delete both, use "
                f"'podstead account delete {pod.name}'."
            )
        return pod

    async def delete(self, name: str) -> None:
        """Delete a pod that has no account. Its name stays reserved until the operator releases it.
        Raises NotFound, Conflict, StorageError."""
        pod = await self.find(name)
        await self.actions.delete(pod.name)

    async def size(self, name: str) -> PodSize:
        """Count what is in a pod. Raises NotFound, StorageError."""
        pod = await existing_pod(self.records.store, name)
        counts = dict.fromkeys(ResourceKind, 0)
        content_bytes = 0
        pages = trees.tree_pages(self.records.store, pod.root, page_resources=_RESOURCES_AT_ONCE)
        async for page in pages:
            for each in page:
                counts[each.kind] += 1
                content_bytes += each.size_bytes
        quota_bytes = pod.quota_bytes
        return PodSize(
            name=pod.name,
            documents=counts[ResourceKind.DOCUMENT],
            containers=counts[ResourceKind.CONTAINER] + counts[ResourceKind.STORAGE],
            access_rules=counts[ResourceKind.ACL],
            descriptions=counts[ResourceKind.DESCRIPTION],
            content_bytes=content_bytes,
            used_bytes=await self.records.store.used_bytes(pod.name),
            quota_bytes=self.settings.quota_bytes if quota_bytes is None else quota_bytes,
        )

    async def _account_id(self, pod: PodRecord) -> str | None:
        found = await self.records.read(USERNAMES, name_key(pod.name))
        return None if found is None else found.value.account_id

    async def _last_use_s(self, account_id: str) -> int | None:
        signed_in = await self.records.read(LAST_SIGN_INS, account_id)
        grants = await self.records.of_owner(GRANTS, account_id)
        used_s = [each.value.last_used_s for each in grants]
        used_s += [] if signed_in is None else [signed_in.value.at_s]
        return max(used_s, default=None)


@dataclass(frozen=True, slots=True)
class RenamingReport:
    """What a renaming did. ``named_elsewhere`` are ACLs of other pods that name the former
    WebID."""

    name: str
    url: str
    web_id: str
    former_url: str
    former_web_id: str
    resources: int
    rewritten: int
    unreadable: Sequence[str]
    named_elsewhere: Sequence[str]


@dataclass(frozen=True, slots=True)
class PodCreation:
    """A new pod; ``token`` is that of its owner, if simple tokens are on."""

    name: str
    url: str
    web_id: str
    token: str | None


async def create_pod(settings: Settings, name: str) -> PodCreation:
    """Create a pod without an account. Raises UnusablePodName, PodNameTaken, RootUnusable,
    StorageError."""
    async with opened_pods(settings) as pods, operator_audit(pods.records) as audit:
        planned: PodPlan = await PodActions(pods.records, audit).create(_planner(pods), name)
        token = planned.token if isinstance(planned, PlannedPod) else None
        return PodCreation(planned.name, planned.pod_uri, planned.web_id, token)


def _planner(pods: OpenedPods) -> PodProvisioner:
    settings = pods.settings
    return PodProvisioner(
        base_url=settings.base_url,
        store=pods.records.store,
        tokens=token_policy(settings),
        clock=pods.records.clock,
        randomness=pods.records.randomness,
        issuer=remembered_provider(settings),
    )


async def rename_pod(
    settings: Settings, name: str, new_name: str, *, on_step: data_root.OnStep
) -> RenamingReport:
    """Give a pod another name, and its account with it. Raises NotFound, UnusablePodName, Conflict,
    QuotaExceeded, RootUnusable, StorageError."""
    new_name = check_name(new_name)
    async with opened_pods(settings) as pods, operator_audit(pods.records) as audit:
        actions = PodActions(pods.records, audit)
        renamed: pod_renaming.Renaming = await actions.rename(
            pods.renamer, name, new_name, progress=partial(on_step, "Reading")
        )
        for folder in folders():
            await folder.follow_name(settings, pods.records, renamed.after.root)
        base_url = pods.settings.base_url
        return RenamingReport(
            name=renamed.after.name,
            url=base_url + renamed.after.root,
            web_id=renamed.after.owner,
            former_url=base_url + renamed.before.root,
            former_web_id=renamed.before.owner,
            resources=renamed.resources,
            rewritten=renamed.rewritten,
            unreadable=renamed.unreadable,
            named_elsewhere=await _naming(pods.records, renamed.before.owner),
        )


async def _naming(records: RecordStore, web_id: str) -> Sequence[str]:
    """The ACLs that name an agent, as far as they are indexed."""
    prefix = agent_prefix(web_id)
    page = await MENTIONS.page(records.store, after=prefix, now_ms=records.now_ms())
    return [each.key[len(prefix) :] for each in page if each.key.startswith(prefix)]


@dataclass(frozen=True, slots=True)
class TokenAdministration:
    """Issues, lists and revokes simple tokens."""

    settings: Settings
    records: RecordStore
    audit: Audit

    async def create(
        self, pod_name: str, options: Mapping[str, object] = MappingProxyType({})
    ) -> IssuedToken:
        """Issue another token for the owner of a pod; ``options`` are those of features. Raises
        NotFound, StartRefused, BadRequest, StorageError."""
        policy = token_policy(self.settings)
        if policy is None:
            raise StartRefused(
                "Simple tokens are off, so the server would not accept one. Turn on simple-tokens."
            )
        pod = await existing_pod(self.records.store, pod_name)

        async def joined(token: TokenRecord) -> Sequence[Record]:
            return await credential_records(self.records, token, options)

        issued = await issue_and_record(policy, pod=pod, records=self.records, joined=joined)
        self.audit.note(AuditEvent.POD_TOKEN_CREATED, pod=pod.name)
        return issued

    async def list(self, pod_name: str | None = None) -> Sequence[TokenRecord]:
        """All tokens, or those of one pod, newest first. Raises NotFound, StorageError."""
        if pod_name is None:
            return await self.records.store.list_tokens()
        pod = await existing_pod(self.records.store, pod_name)
        return await self.records.store.list_tokens(pod=pod.name)

    async def revoke(self, token_id: str) -> None:
        """Revoke one token; a second revocation changes nothing. Raises NotFound, StorageError."""
        record = await self.records.store.read_token(token_id)
        if record is None:
            raise NotFound(f"There is no token with the id '{token_id}'.")
        await self._revoke([record])

    async def revoke_all(self, pod_name: str) -> int:
        """Revoke all tokens of a pod, and return their number. Raises NotFound, StorageError."""
        valid = [record for record in await self.list(pod_name) if record.revoked_s is None]
        await self._revoke(valid)
        return len(valid)

    async def _revoke(self, tokens: Sequence[TokenRecord]) -> None:
        valid = [token for token in tokens if token.revoked_s is None]
        if not await self.records.try_commit(revocations(valid, now_s=self.records.now_s())):
            raise StorageError("The revocation could not be recorded.")
        for token in valid:
            self.audit.note(AuditEvent.POD_TOKEN_REVOKED, token=token.token_id)


@dataclass(frozen=True, slots=True)
class ListedSetting:
    """A setting that can be changed while the server runs. Secrets have no value, nor has what
    the configuration sets."""

    name: str
    value: str | None
    source: str


@dataclass(frozen=True)
class DataRoot:
    """The services for each kind of thing in a data root."""

    settings: Settings
    records: RecordStore
    audit: Audit

    @cached_property
    def pods(self) -> PodAdministration:
        """Pods."""
        return PodAdministration(self.settings, self.records, PodActions(self.records, self.audit))

    @cached_property
    def tokens(self) -> TokenAdministration:
        """Simple tokens."""
        return TokenAdministration(self.settings, self.records, self.audit)

    @cached_property
    def invitations(self) -> InvitationActions:
        """Invitations."""
        return InvitationActions(self.records, self.audit)

    @cached_property
    def setting_changes(self) -> SettingChanges:
        """Changes of settings of a running server."""
        return SettingChanges(self.settings, self.records, self.audit)

    @staticmethod
    def is_secret(name: str) -> bool:
        """Whether the setting with that name is a secret."""
        return any(row.name == name and row.secret for row in live_rows())

    async def live_settings(self) -> Sequence[ListedSetting]:
        """The settings that can be changed while the server runs; what the configuration of the
        server sets has no value here."""
        stored, sources = await read_stored(self.records), await self.setting_changes.sources()
        return [
            ListedSetting(
                row.name,
                None
                if row.secret or row.name in sources
                else stored[row.name].text
                if row.name in stored
                else row.default_text,
                sources.get(row.name) or ("operators" if row.name in stored else ""),
            )
            for row in live_rows()
        ]

    def invitation_link(self, code: str) -> str | None:
        """The link for a code; ``None`` if the root has never had an identity provider, and so no
        page to register on."""
        has_provider = KeyFolder(key_storage(self.settings), self.records.clock).exists()
        issuer = remembered_issuer(self.settings) if has_provider else None
        return invitation_url(issuer, code) if issuer else None

    @cached_property
    def _provider_settings(self) -> Settings:
        """Those with which the accounts were created."""
        return data_root.served_settings(self.settings)

    @property
    def issuer(self) -> str:
        """The issuer of the accounts."""
        return self._provider_settings.issuer

    @cached_property
    def provider(self) -> AccountServices:
        """The services for accounts."""
        from podstead.app.accounts import build_accounts

        return build_accounts(
            self._provider_settings,
            store=self.records.store,
            clock=self.records.clock,
            randomness=self.records.randomness,
            audit=self.audit,
        )

    @property
    def accounts(self) -> Administration:
        """Accounts."""
        return self.provider.administration

    def link(self, secret: str) -> str:
        """The URL of a one-time link."""
        return self.issuer + link_url(secret)

    def change_issuer(self, issuer: str) -> None:
        """Move the accounts to a provider with another issuer at the next start."""
        store_issuer(self.settings, issuer)
        self.audit.note(AuditEvent.ISSUER_CHANGED, issuer=issuer)


@asynccontextmanager
async def open_root(settings: Settings) -> AsyncIterator[DataRoot]:
    """Open an existing data root."""
    async with data_root.opened_records(settings) as records, operator_audit(records) as audit:
        yield DataRoot(await data_root.settings_in_effect(settings, records), records, audit)


def existing_keys(
    settings: Settings, clock: Clock | None = None, audit: Audit | None = None
) -> KeyFolder:
    """The keys of an existing data root. Raises RootUnusable if the root contains none of a
    provider."""
    keys = KeyFolder(key_storage(settings), clock or SystemClock(), audit)
    if not keys.exists():
        raise RootUnusable(
            f"There are no keys of an identity provider in {settings.root}. Set --root to the "
            "data root of a server that was started with --idp."
        )
    return keys


@asynccontextmanager
async def opened_keys(settings: Settings) -> AsyncIterator[KeyFolder]:
    """The keys, to be changed; the server logs the changes if the data root has a store."""
    if not has_records(settings):
        yield existing_keys(settings)
        return
    async with data_root.opened_records(settings) as records, operator_audit(records) as audit:
        yield existing_keys(settings, records.clock, audit)


def state_of(key: ProviderKey, roster: ProviderKeySet) -> str:
    """What a key is used for."""
    key_id = key.pair.key_id
    if key_id in {roster.signer(algorithm).key_id for algorithm in ALGORITHMS}:
        return "signs"
    if key.signs_from_s > roster.now_s:
        return "next"
    return "replaced" if roster.verifier(key_id) is not None else "retired"
