"""Creates pods: record, resources, ACLs and token in one write (A-94)."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from podstead.authn.credentials import SigningKey, make_token
from podstead.core.clock import Clock, Randomness
from podstead.core.errors import StorageError
from podstead.core.identifiers import ResourcePath, slash_variant, subject_of
from podstead.pods.names import PodNameTaken, check_name
from podstead.pods.template import pod_resources
from podstead.rdf.codecs import parse
from podstead.storage import invitations, pods, protocol, record_store, records
from podstead.wac.sharing.index import index_changes, indexed_acl

_TOKEN_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class TokenPolicy:
    """How pod tokens are issued; a ``lifetime_s`` of 0 means no expiry (A-31)."""

    key: SigningKey
    lifetime_s: int


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token, and the record with which it is listed and revoked."""

    token: str
    record: records.TokenRecord


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """A pod, and the write that creates it; ``token`` is ``None`` if no pod tokens are issued."""

    name: str
    web_id: str
    pod_uri: str
    token: str | None
    write: records.Write


def web_id_of(base_url: str, name: str) -> str:
    """The WebID of a pod's owner: ``{base}/<pod>/#me``."""
    return f"{base_url}/{name}/#me"


def issue_token(
    policy: TokenPolicy, *, pod: str, web_id: str, now_ms: int, randomness: Randomness
) -> IssuedToken:
    """Issue a token for the owner of a pod. It is valid once its record is committed."""
    issued_s = now_ms // 1000
    record = records.TokenRecord(
        token_id=randomness.token_hex(_TOKEN_ID_BYTES),
        pod=pod,
        web_id=web_id,
        issued_s=issued_s,
        expires_s=issued_s + policy.lifetime_s if policy.lifetime_s else None,
    )
    token = make_token(
        policy.key,
        token_id=record.token_id,
        web_id=web_id,
        issued_s=issued_s,
        expires_s=record.expires_s,
    )
    return IssuedToken(token=token, record=record)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodProvisioner:
    """Creates pods.

    ``base_url`` has no trailing slash; ``tokens`` is ``None`` if none are issued.

    ``issuer`` is the identity provider stated in new profiles, if any.
    """

    base_url: str
    store: protocol.ResourceStore
    tokens: TokenPolicy | None
    clock: Clock
    randomness: Randomness
    issuer: str | None = None

    async def create(
        self, name: object, admitted: invitations.Admission | None = None
    ) -> PlannedPod:
        """Create a pod atomically. ``admitted`` is the invitation, if one is needed.

        Raises UnusablePodName for an invalid name, UnusableInvitation, and PodNameTaken for the
        name of another pod.
        """
        pod = self.plan(name)
        write = pod.write
        for _ in range(invitations.MAX_ATTEMPTS):
            use = None if admitted is None else await admitted()
            if use is not None:
                write = use.joined_to(pod.write)
            outcome = await self.store.commit(write)
            if isinstance(outcome, records.Committed):
                return pod
            if (
                use is None
                or not isinstance(outcome, records.VersionConflict)
                or outcome.precondition not in use.preconditions
            ):
                raise self.name_taken()
        raise record_store.Contention

    def plan(self, name: object) -> PlannedPod:
        """Plan a pod; the caller may add records to its write. Raises UnusablePodName."""
        checked = check_name(name)
        now_ms = self.clock.now_ms()
        web_id = web_id_of(self.base_url, checked)
        issued = self._issue(checked, web_id, now_ms)
        return PlannedPod(
            name=checked,
            web_id=web_id,
            pod_uri=f"{self.base_url}/{checked}/",
            token=issued.token if issued else None,
            write=self._pod_write(checked, web_id, issued, now_ms),
        )

    def name_taken(self) -> PodNameTaken:
        """The error to raise if another pod has the name."""
        return PodNameTaken()

    def _issue(self, pod: str, web_id: str, now_ms: int) -> IssuedToken | None:
        if self.tokens is None:
            return None
        return issue_token(
            self.tokens, pod=pod, web_id=web_id, now_ms=now_ms, randomness=self.randomness
        )

    def _pod_write(
        self, name: str, web_id: str, issued: IssuedToken | None, now_ms: int
    ) -> records.Write:
        root = ResourcePath(f"/{name}/")
        puts = pod_resources(root, name=name, owner=web_id, issuer=self.issuer)
        pod = records.PodRecord(name=name, root=root, owner=web_id, created_ms=now_ms)
        return records.Write(
            version=records.random_version(self.randomness),
            at_ms=now_ms,
            preconditions=(
                records.NoPod(name),
                records.NoEntry(pods.pod_tombstone(name)),
                records.Absent(root),
                records.Absent(slash_variant(root)),
            ),
            puts=puts,
            records=(
                pod,
                *(() if issued is None else (issued.record,)),
                *self._records_of_rules(puts),
            ),
            changes=tuple(
                records.Change(put.path, records.ChangeType.CREATE, web_id) for put in puts
            ),
        )

    def _records_of_rules(self, puts: Iterable[records.Put]) -> Iterator[records.Record]:
        """The records of the index over access rules."""
        for put in puts:
            if put.kind is records.ResourceKind.ACL and isinstance(put.body, records.InlineBody):
                base_iri = self.base_url + put.path
                document = parse(put.body.content, put.content_type, base_iri=base_iri)
                subject_url = self.base_url + subject_of(put.path)
                after = indexed_acl(document.graph, subject_url=subject_url)
                yield from index_changes(put.path, None, after)


RecordsOfToken = Callable[[records.TokenRecord], Awaitable[Sequence[records.Record]]]
"""What is stored together with a new token."""


async def issue_and_record(
    policy: TokenPolicy,
    *,
    pod: records.PodRecord,
    records: record_store.RecordStore,
    joined: RecordsOfToken | None = None,
) -> IssuedToken:
    """Issue and record another token for an existing pod (A-31)."""
    issued = issue_token(
        policy,
        pod=pod.name,
        web_id=pod.owner,
        now_ms=records.now_ms(),
        randomness=records.randomness,
    )
    further = () if joined is None else await joined(issued.record)
    if not await records.try_commit([issued.record, *further]):
        raise StorageError("The token could not be recorded")
    return issued
