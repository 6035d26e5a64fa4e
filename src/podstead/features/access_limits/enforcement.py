"""Stores limits, finds those of a token, and applies them at the gate.

The limit of a token is read when the token is verified, and travels on the identity. A record of a
limit is never removed while something is limited by it, since that would widen access. The limits
of a pod for applications of other providers are one record, which is read where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from podstead.authn.claims import same_issuer
from podstead.core.errors import Conflict
from podstead.core.identifiers import ResourcePath, storage_root
from podstead.core.identity import AuthenticationMethod, Identity
from podstead.features.access_limits.codes import LimitCodes
from podstead.features.access_limits.limits import AllowedPlace, Limit, allowed_modes
from podstead.resources.planning import ContainerHook
from podstead.storage.protocol import Snapshot
from podstead.storage.record_store import Changes, RecordKind, RecordStore, Versioned, secret_key
from podstead.storage.records import EntryAtVersion, PodRecord, Precondition, Record, TokenRecord
from podstead.wac.acl import origin_of
from podstead.wac.gate import Ceiling

if TYPE_CHECKING:
    from podstead.idp.records import ClientCredential

PAGE: Final = "/.pages/apps/limits"
MAX_LIMITS: Final = 1000
"""How many limits a person has at most."""
MAX_CLIENTS: Final = 200
"""For how many clients of other providers a pod has limits at most."""


class StoredLimit(msgspec.Struct, frozen=True):
    """A limit and what it is for: a client that acts as ``web_id``, or a simple token."""

    web_id: str
    client_id: str
    limit: Limit
    redirect_hosts: tuple[str, ...] = ()
    """Where the client wants people to be sent, in the form of :func:`canonical_host`."""
    asked: str = ""
    """The authorization details that the client asked for then, as JSON."""
    own_folder: str = ""
    """The path of the folder that was made for the client."""
    is_credential: bool = False
    """Whether ``client_id`` is that of client credentials of the person."""


class ClientRule(msgspec.Struct, frozen=True):
    """What clients of other providers may do in a pod at most. ``client`` is an identifier or an
    origin, empty for all that no other rule names."""

    client: str
    limit: Limit


class PodRules(msgspec.Struct, frozen=True):
    """The rules of one pod; the key of the record is its root."""

    rules: tuple[ClientRule, ...] = ()

    def of(self, client_id: str, origin: str | None) -> Limit | None:
        """The limit for a client that sends requests from an origin; ``None`` for everything."""
        by_name: dict[str | None, Limit] = {each.client: each.limit for each in self.rules}
        for name in (client_id, origin_of(client_id), origin, ""):
            if name in by_name:
                return by_name[name]
        return None


LIMITS: Final = RecordKind("access-limit", StoredLimit)
POD_RULES: Final = RecordKind("access-limits-of-pod", PodRules)


class AppliedLimit(msgspec.Struct, frozen=True):
    """A limit on an identity, with the record that it was read from."""

    key: str
    limit: Limit
    unchanged: EntryAtVersion


class OtherProviderMark(msgspec.Struct, frozen=True):
    """The mark of an identity whose application signed the person in at another provider."""

    client_id: str


def client_key(web_id: str, client_id: str) -> str:
    """The key of the limit of a client that acts as a WebID."""
    return secret_key(f"client\n{web_id}\n{client_id}")


def canonical_host(host: str) -> str:
    """The form in which hosts of redirect URIs are compared, which may have a port."""
    name, _, port = host.lower().rpartition(":")
    if not name or not (port.isascii() and (port.isdigit() or not port)):
        name, port = host.lower(), ""
    port = port.lstrip("0")
    return name.removesuffix(".") + (f":{port}" if port not in ("", "80", "443") else "")


def token_key(token_id: str) -> str:
    """The key of the limit of a simple token."""
    return secret_key(f"token\n{token_id}")


class LimitStore:
    """Reads and stores limits."""

    def __init__(self, records: RecordStore) -> None:
        self.records = records

    async def find(self, key: str) -> Versioned[StoredLimit] | None:
        """The limit with this key. Raises StorageError."""
        return await self.records.read(LIMITS, key)

    async def of_client(self, web_id: str, client_id: str) -> Limit | None:
        """The limit of a client; ``None`` for everything. Raises StorageError."""
        stored = await self.find(client_key(web_id, client_id))
        return None if stored is None else stored.value.limit

    async def of_owner(self, owner: str) -> Sequence[Versioned[StoredLimit]]:
        """All of a person. Raises StorageError."""
        return await self.records.of_owner(LIMITS, owner, limit=2 * MAX_LIMITS)

    async def putting(self, key: str, stored: StoredLimit, owner: str) -> Sequence[Record]:
        """What stores a limit; one that takes nothing away is not kept. If there are too many,
        those of tokens and client credentials that have ended make room. Raises Conflict for too
        many, StorageError."""
        if stored.limit.is_everything and not stored.asked:
            return [LIMITS.drop(key)]
        others = [each for each in await self.of_owner(owner) if each.key != key]
        put = LIMITS.put(key, stored, owner=owner)
        if len(others) < MAX_LIMITS:
            return [put]
        ended = await self._ended(others, owner)
        if len(others) - len(ended) >= MAX_LIMITS:
            raise Conflict(LimitCodes.TOO_MANY)
        return [put, *(LIMITS.drop(each) for each in ended)]

    async def _ended(self, found: Sequence[Versioned[StoredLimit]], owner: str) -> Sequence[str]:
        """The keys of those whose token was revoked, or whose client credentials were deleted."""
        from podstead.idp.records import CREDENTIALS

        tokens = await self.records.store.list_tokens()
        valid = {token_key(each.token_id) for each in tokens if each.revoked_s is None}
        credentials = {each.key for each in await self.records.of_owner(CREDENTIALS, owner)}
        return [
            each.key
            for each in found
            if (not each.value.client_id and each.key not in valid)
            or (each.value.is_credential and each.value.client_id not in credentials)
        ]

    async def of_new_credential(
        self, credential: TokenRecord | ClientCredential, limit: Limit
    ) -> Sequence[Record]:
        """The same for a simple token or client credentials, in the write that creates them.
        Workers remember tokens, so the limit of one never changes; it can be revoked."""
        web_id = credential.web_id
        if isinstance(credential, TokenRecord):
            key = token_key(credential.token_id)
            return await self.putting(key, StoredLimit(web_id, "", limit), web_id)
        client_id = credential.credential_id
        stored = StoredLimit(web_id, client_id, limit, is_credential=True)
        return await self.putting(client_key(web_id, client_id), stored, credential.account_id)

    async def rules_of(self, pod: ResourcePath) -> Versioned[PodRules] | None:
        """Those of a pod. Raises StorageError."""
        return await self.records.read(POD_RULES, pod)


class LimitedIdentities:
    """Finds the limit of a token when the token is verified."""

    def __init__(self, limits: LimitStore, issuer: str | None) -> None:
        """``issuer`` is that of this server's provider, if it has one."""
        self._limits = limits
        self._issuer = issuer

    async def refined(self, identity: Identity) -> Identity:
        """The identity with its limit. Raises StorageError."""
        if identity.method is AuthenticationMethod.SIMPLE and identity.token_id is not None:
            key = token_key(identity.token_id)
        elif identity.issuer is None:
            return identity
        elif self._issuer is None or not same_issuer(identity.issuer, self._issuer):
            return replace(identity, limit=OtherProviderMark(identity.client_id or ""))
        elif identity.client_id is None:
            return identity
        else:
            key = client_key(identity.iri, identity.client_id)
        stored = await self._limits.find(key)
        if stored is None:
            return identity if identity.limit is None else replace(identity, limit=None)
        limit, until_s = stored.value.limit, identity.holds_until_s
        if limit.ends_s is not None and not limit.has_ended(self._limits.records.now_s()):
            until_s = limit.ends_s if until_s is None else min(until_s, limit.ends_s)
        return replace(
            identity,
            limit=AppliedLimit(key, limit, stored.unchanged),
            may_state_identity=identity.may_state_identity and limit.identity,
            verified_until_s=until_s,
        )


class LimitedAccess:
    """Applies limits at the gate."""

    def __init__(self, limits: LimitStore, origin: str) -> None:
        """``origin`` is that of the page on which a limit is changed."""
        self._limits = limits
        self._origin = origin

    async def ceiling(
        self, agent: Identity, origin: str | None, subject: ResourcePath, snapshot: Snapshot
    ) -> Ceiling | None:
        """What the limit allows on the resource. Raises StorageError."""
        del snapshot
        found, now_s = agent.limit, self._limits.records.now_s()
        if isinstance(found, AppliedLimit):
            asks_at = None
            if agent.method is not AuthenticationMethod.SIMPLE:
                asks_at = f"{self._origin}{PAGE}/{found.key}?path={quote(subject)}"
            return _ceiling(found.limit, subject, now_s, found.unchanged, asks_at)
        return await self._of_pod(found, origin, subject, now_s)

    async def _of_pod(
        self, found: object, origin: str | None, subject: ResourcePath, now_s: int
    ) -> Ceiling | None:
        pod = storage_root(subject)
        if pod is None or not isinstance(found, OtherProviderMark):
            return None
        stored = await self._limits.rules_of(pod)
        unchanged: Precondition = POD_RULES.absent(pod) if stored is None else stored.unchanged
        limit = None
        if stored is not None:
            limit = stored.value.of(found.client_id, None if origin is None else origin_of(origin))
        if limit is None:
            return Ceiling(preconditions=(unchanged,))
        return _ceiling(limit, subject, now_s, unchanged)


def _ceiling(
    limit: Limit,
    subject: ResourcePath,
    now_s: int,
    unchanged: Precondition,
    asks_at: str | None = None,
) -> Ceiling:
    has_end = limit.ends_s is not None and not limit.has_ended(now_s)
    return Ceiling(
        allowed_modes(limit, subject, now_s=now_s),
        preconditions=(unchanged,),
        asks_at=asks_at,
        until_ms=(limit.ends_s or 0) * 1000 if has_end else None,
    )


class AccessLimitsHook(ContainerHook):
    """Lets limits follow a pod that is renamed. A limit stays with the path that the person chose,
    whatever is moved."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    def of_deletion(self, container: ResourcePath) -> Sequence[Record]:
        """The rules of a pod end with it."""
        return [POD_RULES.drop(container)] if storage_root(container) == container else ()

    async def of_renaming(
        self,
        pod: PodRecord,
        after: PodRecord,
        renamed: Callable[[ResourcePath], ResourcePath],
    ) -> Changes[None]:
        """The limits of the pod's owner under their new WebID, since applications to which they
        have consented sign in with it, and the rules of the pod under its new name."""
        records: list[Record] = []
        preconditions: list[Precondition] = []
        root, last = pod.root, ""
        while page := await LIMITS.page(
            self._records.store, after=last, now_ms=self._records.now_ms()
        ):
            for each in page:
                if each.value.limit.pod == root and each.value.client_id:
                    limit = _renamed(each.value.limit, root, renamed)
                    is_owner = each.value.web_id == pod.owner
                    web_id = after.owner if is_owner else each.value.web_id
                    folder = each.value.own_folder
                    folder = renamed(ResourcePath(folder)) if folder else ""
                    value = msgspec.structs.replace(each.value, limit=limit, own_folder=folder)
                    records += _moved(each, value, web_id, each.owner)
                    preconditions.append(each.unchanged)
            last = page[-1].key
        stored = await self._records.read(POD_RULES, root)
        if stored is None:
            return Changes(None, records, [*preconditions, POD_RULES.absent(root)])
        rules = tuple(
            msgspec.structs.replace(each, limit=_renamed(each.limit, root, renamed))
            for each in stored.value.rules
        )
        records += [
            POD_RULES.drop(root),
            POD_RULES.put(after.root, PodRules(rules), owner=after.root),
        ]
        return Changes(None, records, [*preconditions, stored.unchanged])


async def move_limits(records: RecordStore, renamed: Callable[[str], str]) -> None:
    """Store the limits of all people under their WebIDs at another base URL. Raises StorageError,
    Contention."""
    async for each in records.each(LIMITS):
        web_id, owner = renamed(each.value.web_id), renamed(each.owner or "") or None
        if (web_id, owner) != (each.value.web_id, each.owner):
            written = _moved(each, each.value, web_id, owner)
            await records.commit(written, [each.unchanged])


def _moved(
    stored: Versioned[StoredLimit], value: StoredLimit, web_id: str, owner: str | None
) -> Sequence[Record]:
    """What stores a limit with another value, for another WebID."""
    key = client_key(web_id, value.client_id) if value.client_id else stored.key
    put = LIMITS.put(key, msgspec.structs.replace(value, web_id=web_id), owner=owner)
    return [put] if key == stored.key else [LIMITS.drop(stored.key), put]


def _renamed(
    limit: Limit, root: ResourcePath, renamed: Callable[[ResourcePath], ResourcePath]
) -> Limit:
    places: Iterable[AllowedPlace] = (
        msgspec.structs.replace(each, path=renamed(ResourcePath(each.path)))
        if each.path.startswith(root)
        else each
        for each in limit.places
    )
    return msgspec.structs.replace(limit, pod=renamed(root), places=tuple(places))
