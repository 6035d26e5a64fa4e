"""Checks of access rules: that each ACL can be read, and that the index agrees with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import msgspec

from podstead.app.adapters.bundled_contexts import bundled_contexts
from podstead.app.operator.checking.context import CheckContext
from podstead.app.operator.checking.findings import Code, Finding
from podstead.core.errors import BadRequest, BodyTooLarge, UnsupportedMediaType
from podstead.core.identifiers import ResourcePath, storage_root, subject_of
from podstead.rdf.codecs import parse
from podstead.rdf.errors import RdfTooComplex, UnknownContext
from podstead.rdf.graph import EMPTY_GRAPH, Dataset
from podstead.resources.sharing.rules_index import BUILDING, BuildingProgress
from podstead.storage.blobs.body_store import blob_path
from podstead.storage.inspection import StoredAcl
from podstead.storage.records import Version
from podstead.wac.sharing.index import ACLS, IndexedAcl, indexed_acl

_building = msgspec.json.Decoder(BuildingProgress)
_indexed = msgspec.json.Decoder(IndexedAcl)


def check_rules(check: CheckContext) -> Iterator[Finding]:
    """ACLs that nobody can read grant nothing. An index that is still being built is no finding."""
    check.on_step("Checking access rules", 0, 0)
    index = _index_of(check)
    seen = set()
    for acl in check.records.acls():
        seen.add(acl.path)
        content = _content_of(check, acl)
        if content is None or acl.path in check.damaged:
            continue  # another finding
        url = check.base_url + acl.path
        try:
            rules = parse(
                content, acl.content_type, base_iri=url, contexts=bundled_contexts()
            ).dataset
        except (UnknownContext, RdfTooComplex, BodyTooLarge):
            continue  # a running server may be able to read it
        except (BadRequest, UnsupportedMediaType) as error:
            repair = partial(check.repairs.close_acl, acl.path, acl.version, content)
            yield Finding(Code.ACL_UNREADABLE, acl.path, f"The ACL cannot be read: {error}", repair)
            continue
        if index is not None and storage_root(acl.path) is not None:
            yield from _check_index(check, acl, rules, index)
    for path in sorted(set(index or ()) - seen):
        empty = partial(
            check.repairs.index_acl, ResourcePath(path), Version(""), Dataset(EMPTY_GRAPH)
        )
        what = "The index over access rules has an ACL that does not exist"
        yield Finding(Code.RULES_INDEX_WRONG, path, what, empty)


def _content_of(check: CheckContext, acl: StoredAcl) -> bytes | None:
    if acl.blob is None:
        return acl.content
    try:
        return blob_path(check.layout.blobs, acl.blob).read_bytes()
    except OSError:
        return None


def _index_of(check: CheckContext) -> Mapping[str, IndexedAcl] | None:
    """What the index says about each ACL; ``None`` while it is being built."""
    progress = [_building.decode(entry.value) for entry in check.records.entries(BUILDING.kind)]
    if not any(each.is_complete for each in progress):
        return None
    return {
        entry.entry.removeprefix(f"{ACLS.kind}/"): _indexed.decode(entry.value)
        for entry in check.records.entries(ACLS.kind)
    }


def _check_index(
    check: CheckContext, acl: StoredAcl, rules: Dataset, index: Mapping[str, IndexedAcl]
) -> Iterator[Finding]:
    expected = indexed_acl(rules.default, subject_url=check.base_url + subject_of(acl.path))
    if index.get(acl.path) != expected:
        yield Finding(
            Code.RULES_INDEX_WRONG,
            acl.path,
            "The index over access rules does not agree with the ACL",
            partial(check.repairs.index_acl, acl.path, acl.version, rules),
        )
