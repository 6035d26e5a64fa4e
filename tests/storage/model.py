"""What should a store hold after some writes? A model of dictionaries, slow and plain on purpose.

It knows nothing of how engines work: membership is found by looking at all paths, used bytes by
adding all sizes, and a write is tried on a copy that is kept only if nothing speaks against it.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from podstead.storage.records import (
    Absent,
    AtVersion,
    Change,
    MembersAtVersion,
    NoMembers,
    NoPod,
    PodRecord,
    Precondition,
    Present,
    ResourceKind,
    Version,
    Write,
)

_END_MS = 999
"""What a time in whole seconds gets added if another state may have the same date. The writes of a
model are a second apart."""


@dataclass
class Stored:
    kind: ResourceKind
    version: Version
    content: bytes
    created_ms: int
    modified_ms: int
    members_version: Version | None = None
    members_modified_ms: int | None = None


@dataclass
class Refusal:
    """What an engine must answer; ``broken`` is ``None`` if the structure forbids the write."""

    over_quota: bool = False
    broken: Precondition | None = None


@dataclass
class Model:
    inline_body_bytes: int
    resources: dict[str, Stored] = field(default_factory=dict)
    pods: list[PodRecord] = field(default_factory=list)
    log: list[tuple[Change, Version]] = field(default_factory=list)
    deleted_acls: dict[Version, dict[str, Stored]] = field(default_factory=dict)

    def apply(self, write: Write, contents: dict[str, bytes]) -> Refusal | None:
        """Apply the write, or tell why not and change nothing."""
        for precondition in write.preconditions:
            if not self._holds(precondition):
                return Refusal(broken=precondition)
        tried = deepcopy(self)
        if not tried._change(write, contents):
            return Refusal()
        for root in {f"/{path.split('/')[1]}/" for path in contents}:
            before, after = self.used_bytes(root), tried.used_bytes(root)
            if 0 < write.default_quota_bytes < after and after > before:
                return Refusal(over_quota=True)
        self.resources, self.pods, self.log = tried.resources, tried.pods, tried.log
        self.deleted_acls = tried.deleted_acls
        return None

    def members(self, container: str) -> list[str]:
        return sorted(path for path in self.resources if self._lister(path) == container)

    def used_bytes(self, root: str) -> int:
        """Every resource has a price of its own."""
        return sum(
            len(stored.content) + 512 + 8 * len(path)
            for path, stored in self.resources.items()
            if path.startswith(root)
        )

    def _lister(self, path: str) -> str | None:
        if self.resources[path].kind not in (ResourceKind.DOCUMENT, ResourceKind.CONTAINER):
            return None
        return path.rstrip("/").rpartition("/")[0] + "/"

    def _holds(self, precondition: Precondition) -> bool:
        match precondition:
            case AtVersion(path, version):
                return path in self.resources and self.resources[path].version == version
            case Absent(path):
                return path not in self.resources
            case Present(path):
                return path in self.resources
            case MembersAtVersion(path, version):
                return path in self.resources and self.resources[path].members_version == version
            case NoMembers(path):
                return not self.members(path)
            case NoPod(name):
                return name.lower() not in [pod.name.lower() for pod in self.pods]
            case _:
                raise AssertionError("The model knows no entries")

    def _change(self, write: Write, contents: dict[str, bytes]) -> bool:
        touched: dict[str, set[str]] = {}
        for put in write.puts:
            old = self.resources.get(put.path)
            if put.creates != (old is None):
                return False
            is_auxiliary = put.kind in (ResourceKind.ACL, ResourceKind.DESCRIPTION)
            # Nothing tells whether an auxiliary resource existed within the second.
            modified_ms = write.at_ms + _END_MS * (is_auxiliary and old is None)
            new = Stored(put.kind, write.version, contents[put.path], write.at_ms, modified_ms)
            if old is not None:
                new.created_ms = old.created_ms
                new.members_version = old.members_version
                new.members_modified_ms = old.members_modified_ms
            elif put.kind in (ResourceKind.CONTAINER, ResourceKind.STORAGE):
                new.members_version, new.members_modified_ms = write.version, write.at_ms
            self.resources[put.path] = new
            self._touch(touched, put.path, "replaced" if old else "created")
        for path in write.deletes:
            if path not in self.resources:
                return False
            self._touch(touched, path, "deleted")
            gone = self.resources.pop(path)
            if gone.kind is ResourceKind.ACL:
                self.deleted_acls.setdefault(write.version, {})[path] = gone
        if not self._tell_containers(write, touched):
            return False
        self.pods += [record for record in write.records if isinstance(record, PodRecord)]
        self.log += [(change, write.version) for change in write.changes]
        return True

    def _touch(self, touched: dict[str, set[str]], path: str, change: str) -> None:
        lister = self._lister(path)
        if lister is not None:
            touched.setdefault(lister, set()).add(change)

    def _tell_containers(self, write: Write, touched: dict[str, set[str]]) -> bool:
        listers = [self._lister(path) for path in self.resources]
        if any(lister is not None and lister not in self.resources for lister in listers):
            return False
        for path, changes in touched.items():
            if path in self.resources:
                self.resources[path].members_version = write.version
                if changes != {"replaced"}:
                    gone_ms = _END_MS * ("deleted" in changes)
                    self.resources[path].members_modified_ms = write.at_ms + gone_ms
                    above = self._lister(path)  # its listing shows that time
                    if above is not None:
                        self.resources[above].members_version = write.version
        return True
