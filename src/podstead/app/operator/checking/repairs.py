"""Repairs. Each looks first whether things still are as they were found, and none deletes what may
be wanted: what a repair takes out of use goes to a dated folder in the root, where ``list.jsonl``
says what each thing was and where it belonged."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from podstead.app.operator.checking.findings import Code, FindingCode
from podstead.core import identifiers
from podstead.core.errors import StorageError, StoreUnavailable
from podstead.core.media_types import TURTLE
from podstead.rdf.codecs import parse
from podstead.rdf.graph import EMPTY_GRAPH, Dataset
from podstead.resources.sharing.rules_index import RulesIndex
from podstead.storage import records as storage_records
from podstead.storage.files import sync_directory, write_private
from podstead.storage.former_states import FORMER_STATE, FormerState, former_state_of
from podstead.storage.keys import KeyStorage
from podstead.storage.open_body import whole_body
from podstead.storage.record_store import RecordStore
from podstead.storage.schema import SqlTable

if TYPE_CHECKING:  # an optional library
    from podstead.storage.blobs.s3 import ObjectBlobs


@dataclass(slots=True)
class SetAside:
    """The folder for what one repair sets aside, created with the first of it."""

    folder: Path
    _number: int = field(default=0)

    def move(self, path: Path, *, code: str, where: str) -> None:
        """Move a file or folder."""
        path.rename(self._note(path.name, code=code, where=where))
        sync_directory(self.folder)
        sync_directory(path.parent)

    def keep_copy(self, path: Path, *, code: str, where: str) -> None:
        """Keep a second name of an immutable file, or a copy."""
        target = self._note(path.name, code=code, where=where)
        try:
            target.hardlink_to(path)
        except OSError:
            shutil.copyfile(path, target)
        sync_directory(self.folder)

    def write(self, content: bytes, *, code: str, where: str, **facts: object) -> None:
        """Write bytes."""
        write_private(self._note("content", code=code, where=where, **facts), content)
        sync_directory(self.folder)

    def note(self, *, code: str, where: str, **facts: object) -> None:
        """List something of which nothing is left but facts."""
        self._list({"code": code, "where": where, **facts})

    def _note(self, name: str, **facts: object) -> Path:
        self._number += 1
        target = self.folder / f"{self._number:06}-{name}"
        self._list({**facts, "file": target.name})
        return target

    def _list(self, facts: dict[str, object]) -> None:
        if not self.folder.is_dir():
            self.folder.mkdir(mode=0o700, parents=True)
            self.folder.parent.chmod(0o700)
            sync_directory(self.folder.parent)
        descriptor = os.open(
            self.folder / "list.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        try:
            os.write(descriptor, msgspec.json.encode(facts) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_EMPTY: Final = Dataset(EMPTY_GRAPH)
_OWNER_ONLY: Final = """\
@prefix acl: <http://www.w3.org/ns/auth/acl#>.

<#owner> a acl:Authorization;
    acl:agent <{owner}>;
    acl:accessTo <{subject}>;{default}
    acl:mode acl:Read, acl:Write, acl:Control.
"""


@dataclass(frozen=True, slots=True)
class Repairs:
    """Repairs one data root."""

    records: RecordStore
    base_url: str
    aside: SetAside

    # --- bodies -------------------------------------------------------------------------------

    async def replace_body(
        self,
        path: identifiers.ResourcePath,
        code: FindingCode,
        kept: Path | bytes | None,
        *,
        blob: storage_records.BlobId | None,
    ) -> bool | str:
        """Set aside what is left of a body, and give the resource one that can be read; a document
        without a body is deleted. ``blob`` is the damaged one, ``None`` for a small body."""
        found = await self._read(path)
        if found is None or await self._was_replaced(found, blob):
            return blob is not None and await self._drop_former_with(path, blob)
        await self._keep(found, code, kept)
        if found.kind is storage_records.ResourceKind.ACL:
            done, what = await self._close(found), "Left only the owner with access by"
        elif found.kind.is_container:
            empty = storage_records.Put(
                path, found.kind, found.content_type, storage_records.InlineBody(b""), creates=False
            )
            done = await self._commit(
                [storage_records.AtVersion(path, found.version)], puts=[empty]
            )
            what = "Emptied the description of"
        else:
            done, what = await self._delete(found), "Deleted"
        lost = "gone" if kept is None else f"damaged; what was left of it is in {self.aside.folder}"
        return done and f"{what} {path}: its body is {lost}. Restore it from a backup."

    async def drop_former(self, state: FormerState) -> bool | str:
        """Remove a former state whose body cannot be read."""
        await self.records.commit([state.drop])
        return f"Removed a former state of {state.path}: its body is gone or damaged."

    async def _drop_former_with(
        self, path: identifiers.ResourcePath, blob: storage_records.BlobId
    ) -> bool | str:
        """The same for those of a resource that have this large body."""
        root = identifiers.storage_root(path) or ""
        select = f"SELECT {FORMER_STATE} FROM former_states WHERE root = %s AND blob = %s"  # noqa: S608
        for row in await self.records.store.fetch(select, root, blob):
            return await self.drop_former(former_state_of(row))
        return False

    async def _was_replaced(
        self, found: storage_records.Metadata, blob: storage_records.BlobId | None
    ) -> bool:
        """Whether somebody has stored another body since the damaged one was found."""
        if blob is not None or found.blob is not None:
            return found.blob != blob
        try:
            return await self.records.store.open_body(found) is not None
        except StoreUnavailable:
            raise
        except StorageError:
            return False

    async def close_acl(
        self,
        path: identifiers.ResourcePath,
        version: storage_records.Version,
        content: bytes | None,
    ) -> bool:
        """Set an ACL aside, and leave only the owner with access."""
        found = await self._read(path)
        if found is None or found.version != version:
            return False
        await self._keep(found, Code.ACL_UNREADABLE, content)
        return await self._close(found)

    async def _keep(
        self, found: storage_records.Metadata, code: FindingCode, kept: Path | bytes | None
    ) -> None:
        facts = {
            "content_type": found.content_type,
            "size_bytes": found.size_bytes,
            "modified_ms": found.modified_ms,
        }
        if isinstance(kept, Path):
            self.aside.keep_copy(kept, code=code.value, where=found.path)
        elif kept is None:
            self.aside.note(code=code.value, where=found.path, **facts)
        else:
            self.aside.write(kept, code=code.value, where=found.path, **facts)

    async def _close(self, acl: storage_records.Metadata) -> bool:
        subject = identifiers.subject_of(acl.path)
        url = self.base_url + subject
        owner = await self._owner_of(subject)
        default = f" acl:default <{url}>;" if subject.endswith("/") else ""
        text = (
            "" if owner is None else _OWNER_ONLY.format(owner=owner, subject=url, default=default)
        )
        content = text.encode()
        rules = parse(content, TURTLE, base_iri=self.base_url + acl.path).dataset
        changes = await self._index().of(acl.path, rules)
        put = storage_records.Put(
            acl.path, acl.kind, TURTLE, storage_records.InlineBody(content), creates=False
        )
        conditions = [storage_records.AtVersion(acl.path, acl.version), *changes.preconditions]
        return await self._commit(conditions, puts=[put], records=changes.records)

    async def _delete(self, found: storage_records.Metadata) -> bool:
        """Delete a document, and its ACL and description as a DELETE does."""
        auxiliary = (identifiers.acl_of(found.path), identifiers.description_of(found.path))
        conditions: list[storage_records.Precondition] = [
            storage_records.AtVersion(found.path, found.version)
        ]
        deletes = [found.path]
        records: list[storage_records.Record] = []
        if found.kind is storage_records.ResourceKind.DOCUMENT:
            for path in auxiliary:
                other = await self._read(path)
                if other is None:
                    continue
                try:
                    body = await self.records.store.open_body(other)
                    content = b"" if body is None else await whole_body(body)
                except StorageError:
                    content = b""
                self.aside.write(content, code="deleted-with", where=path)
                deletes.append(path)
                conditions.append(storage_records.AtVersion(path, other.version))
            changes = await self._index().of(auxiliary[0], _EMPTY)
            records += changes.records
            conditions += changes.preconditions
        return await self._commit(conditions, deletes=deletes, records=records)

    async def take_orphan_body(self, path: identifiers.ResourcePath) -> bool:
        content = await self.records.store.take_orphan_body(path)
        if content is None:
            return False
        self.aside.write(content, code=Code.BODY_ORPHANED.value, where=path)
        return True

    # --- containers and figures ---------------------------------------------------------------

    async def create_containers(self, path: identifiers.ResourcePath) -> bool:
        """Create the containers that are missing above a resource, and have them count it."""
        above = [
            each
            for each in identifiers.ancestors(path)
            if identifiers.storage_root(each) is not None
        ]
        stored = await self.records.store.read_metadata(above)
        missing = [each for each in sorted(above, key=len) if stored[each] is None]
        puts = [
            storage_records.Put(
                each, _kind_of(each), TURTLE, storage_records.InlineBody(b""), creates=True
            )
            for each in missing
        ]
        if puts and not await self._commit([], puts=puts):
            return False
        return await self.recount()

    async def recount(self) -> bool:
        await self.records.store.recount()
        return True

    async def drop_entry(self, found: storage_records.Entry) -> bool:
        """Set a record aside, and remove it."""
        entry = storage_records.EntryId(found.entry)
        self.aside.write(found.value, code="record", where=entry)
        return await self._commit(
            [storage_records.EntryAtVersion(entry, found.version)],
            records=[storage_records.DropEntry(entry)],
        )

    async def drop_rows(self, table: SqlTable, storage: identifiers.ResourcePath) -> bool:
        """Set the rows of a feature aside that belong to a storage, and remove them."""
        statement = table.select(f"WHERE {table.storage} = %s")
        rows = await self.records.store.fetch(statement, storage)
        content = msgspec.json.encode([dict(zip(table.columns, row, strict=True)) for row in rows])
        self.aside.write(content, code=Code.ROWS_ORPHANED.value, where=f"{table.name} {storage}")
        drops = [storage_records.DropRow(table, table.key_of(row)) for row in rows]
        return await self._commit([storage_records.Absent(storage)], records=drops)

    async def index_acl(
        self, path: identifiers.ResourcePath, version: storage_records.Version, rules: Dataset
    ) -> bool:
        """Record the rules of an ACL in the index."""
        changes = await self._index().of(path, rules)
        found = await self._read(path)
        if found is not None and found.version != version:
            return False
        return await self.records.try_commit(changes.records, changes.preconditions)

    # --- files --------------------------------------------------------------------------------

    async def set_file_aside(self, path: Path, code: FindingCode) -> bool:
        try:
            self.aside.move(path, code=code.value, where=str(path))
        except FileNotFoundError:
            return False
        return True

    async def set_object_aside(
        self, blobs: ObjectBlobs, key: str, size_bytes: int, code: FindingCode
    ) -> bool:
        kept = await blobs.set_aside(key, size_bytes, self.aside.folder.name)
        self.aside.note(code=code.value, where=key, object=kept)
        return True

    async def set_key_aside(self, keys: KeyStorage, name: str, content: bytes) -> bool:
        self.aside.write(content, code=Code.KEY_DAMAGED.value, where=name)
        return keys.remove(name)

    async def make_private(self, path: Path) -> bool:
        _make_private(path)
        return True

    # --- the store ----------------------------------------------------------------------------

    def _index(self) -> RulesIndex:
        return RulesIndex(self.records, base_url=self.base_url)

    async def _read(self, path: identifiers.ResourcePath) -> storage_records.Metadata | None:
        return (await self.records.store.read_metadata([path]))[path]

    async def _owner_of(self, path: identifiers.ResourcePath) -> str | None:
        root = identifiers.storage_root(path)
        pod = None if root is None else await self.records.store.read_pod(root.strip("/"))
        return None if pod is None else pod.owner

    async def _commit(
        self,
        preconditions: Sequence[storage_records.Precondition],
        *,
        puts: Sequence[storage_records.Put] = (),
        deletes: Sequence[identifiers.ResourcePath] = (),
        records: Sequence[storage_records.Record] = (),
    ) -> bool:
        write = storage_records.Write(
            version=self.records.new_version(),
            at_ms=self.records.now_ms(),
            preconditions=tuple(preconditions),
            puts=tuple(puts),
            deletes=tuple(deletes),
            records=tuple(records),
        )
        return isinstance(await self.records.store.commit(write), storage_records.Committed)


def _make_private(path: Path) -> None:
    path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)


def _kind_of(container: identifiers.ResourcePath) -> storage_records.ResourceKind:
    is_root = identifiers.storage_root(container) == container
    return (
        storage_records.ResourceKind.STORAGE if is_root else storage_records.ResourceKind.CONTAINER
    )
