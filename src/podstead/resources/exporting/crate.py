"""Describes an exported pod as an RO-Crate 1.2 and as a page for people.

Pure, and produced piece by piece: the length of each piece depends only on the metadata of the
resources, not on their content, whose SHA-256 always has the same length.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final
from urllib.parse import quote

from podstead.core.date_times import write_time
from podstead.core.identifiers import DESCRIPTION_SUFFIX, ResourcePath, parent_container, subject_of
from podstead.core.media_types import essence
from podstead.resources.entity_tags import last_modified_ms
from podstead.resources.exporting.contents import VERSIONS, ArchivedResource, PodContents
from podstead.storage.records import Metadata, ResourceKind

MANIFEST: Final = "ro-crate-metadata.json"
PAGE: Final = "index.html"
NO_HASH: Final = "0" * 64
SOLID_PROTOCOL: Final = "https://solidproject.org/TR/protocol"
WAC: Final = "https://solidproject.org/TR/wac"

_IRI_SAFE: Final = "/!$&'()*+,;=:@~-._"
"""The characters that are not escaped, besides letters and digits. RO-Crate requires IRIs, not
URIs."""
_CONTEXT: Final = "https://w3id.org/ro/crate/1.2/context"
_VERSION: Final = "https://w3id.org/ro/crate/1.2"
_BUNDLE_TYPE: Final = "application/x-git-bundle"
_RIGHTS: Final = "#rights"
_CONTAINED: Final = (
    "its documents with their types and dates, their access rules (.acl) and their descriptions "
    "(.meta)"
)
_NOT_CONTAINED: Final = (
    "Not contained: passwords and other ways to sign in, applications, notification channels, and "
    "the history of changes"
)


def manifest(
    contents: PodContents,
    archived: Sequence[ArchivedResource],
    hashes: Mapping[str, str],
    *,
    page_bytes: int,
    changed: Sequence[ResourcePath] = (),
) -> Iterator[bytes]:
    """``ro-crate-metadata.json``; ``hashes`` has the SHA-256 of each file by its name, or nothing
    if only the length is wanted. The ``changed`` resources were changed during the export."""
    yield f'{{"@context": {json.dumps(_CONTEXT)}, "@graph": ['.encode()
    members = _members(archived)
    first = True
    for entity in _entities(contents, archived, hashes, members, page_bytes, changed):
        yield (b"\n" if first else b",\n") + json.dumps(entity, ensure_ascii=False).encode()
        first = False
    yield b"\n]}\n"


def _entities(  # noqa: PLR0917 - each is a part of the whole
    contents: PodContents,
    archived: Sequence[ArchivedResource],
    hashes: Mapping[str, str],
    members: Mapping[str, Sequence[str]],
    page_bytes: int,
    changed: Sequence[ResourcePath],
) -> Iterator[dict[str, Any]]:
    pod, root_name = contents.pod, archived[0].name
    yield {
        "@id": MANIFEST,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": _VERSION},
    }
    yield {
        "@id": "./",
        "@type": "Dataset",
        "name": f"The pod {pod.name}",
        "description": description(contents, changed),
        "datePublished": write_time(contents.modified_ms),
        "license": {"@id": _RIGHTS},
        "conformsTo": {"@id": SOLID_PROTOCOL},
        "identifier": pod.name,
        "dateCreated": write_time(pod.created_ms),
        "creator": {"@id": pod.owner},
        "publisher": {"@id": f"{contents.base_url}/"},
        "provider": {"@id": contents.issuer},
        "mainEntity": {"@id": iri_of(root_name)},
        "hasPart": [
            {"@id": iri_of(name)}
            for name in (root_name, PAGE, *([VERSIONS] if contents.versions else ()))
        ],
    }
    yield {
        "@id": _RIGHTS,
        "@type": "CreativeWork",
        "name": "Rights",
        "description": "All rights remain with those who have them; an export grants none.",
    }
    yield {"@id": pod.owner, "@type": "Person", "name": f"The owner of the pod {pod.name}"}
    yield {
        "@id": f"{contents.base_url}/",
        "@type": "Organization",
        "name": "The server that the pod was on",
        "url": f"{contents.base_url}/",
    }
    if contents.issuer not in (f"{contents.base_url}/", pod.owner):
        yield {
            "@id": contents.issuer,
            "@type": "Organization",
            "name": "The identity provider of that server",
            "url": contents.issuer,
        }
    yield {"@id": SOLID_PROTOCOL, "@type": ["CreativeWork", "Profile"], "name": "Solid Protocol"}
    yield {"@id": WAC, "@type": ["CreativeWork", "Standard"], "name": "Web Access Control"}
    yield {
        "@id": PAGE,
        "@type": "File",
        "name": "Table of contents",
        "encodingFormat": "text/html",
        "contentSize": str(page_bytes),
        "sha256": hashes.get(PAGE, NO_HASH),
        "about": {"@id": "./"},
    }
    names = {each.metadata.path: each.name for each in archived if each.former is None}
    for each in archived:
        if each.metadata.kind.is_container:
            yield from _container(contents, each, hashes, members)
        elif each.former is None:
            yield _file(contents, each, hashes, names)
        else:
            # Without a URL, so that nobody takes it for the document.
            of = {"@id": iri_of(each.version_of)}
            yield {**_file_facts(each.name, each.metadata, hashes), "exampleOfWork": of}
    if contents.versions:
        yield {
            "@id": iri_of(VERSIONS),
            "@type": "Dataset",
            "name": "Former versions of documents",
            "hasPart": [{"@id": iri_of(each.name)} for each in archived if each.former],
        }


def _container(
    contents: PodContents,
    each: ArchivedResource,
    hashes: Mapping[str, str],
    members: Mapping[str, Sequence[str]],
) -> Iterator[dict[str, Any]]:
    metadata = each.metadata
    url = contents.url_of(metadata.path)
    described = [each.described_by] if each.described_by else []
    files = [name for name in (each.repository, each.described_by) if name]
    entity: dict[str, Any] = {
        "@id": iri_of(each.name),
        "@type": "Dataset",
        "name": each.name.rstrip("/").rpartition("/")[2],
        "url": url,
        "dateCreated": write_time(metadata.created_ms),
        "dateModified": write_time(last_modified_ms(metadata)),
        "hasPart": [{"@id": iri_of(name)} for name in (*files, *members.get(each.name, ()))],
    }
    yield entity
    if each.repository:
        yield {
            **_bundle_facts(contents, each, hashes),
            "codeRepository": url,
            "about": {"@id": iri_of(each.name)},
        }
    if described:
        yield {
            **_file_facts(each.described_by, metadata, hashes),
            "url": url + DESCRIPTION_SUFFIX,
            "about": {"@id": iri_of(each.name)},
        }


def _file(
    contents: PodContents,
    each: ArchivedResource,
    hashes: Mapping[str, str],
    names: Mapping[ResourcePath, str],
) -> dict[str, Any]:
    metadata = each.metadata
    entity = {
        **_file_facts(each.name, metadata, hashes),
        "url": contents.url_of(metadata.path),
    }
    if metadata.kind is not ResourceKind.DOCUMENT:
        entity["about"] = {"@id": iri_of(names.get(subject_of(metadata.path), "./"))}
    if metadata.kind is ResourceKind.ACL:
        entity["conformsTo"] = {"@id": WAC}
    return entity


def _file_facts(name: str, metadata: Metadata, hashes: Mapping[str, str]) -> dict[str, Any]:
    return {
        "@id": iri_of(name),
        "@type": "File",
        "name": name.rpartition("/")[2],
        "encodingFormat": metadata.content_type,
        "contentSize": str(metadata.size_bytes),
        "dateCreated": write_time(metadata.created_ms),
        "dateModified": write_time(metadata.modified_ms),
        "sha256": hashes.get(name, NO_HASH),
    }


def _bundle_facts(
    contents: PodContents, each: ArchivedResource, hashes: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "@id": iri_of(each.repository),
        "@type": ["File", "SoftwareSourceCode"],
        "name": each.repository.rpartition("/")[2],
        "description": "A git repository with all its branches and tags; git clone reads it.",
        "encodingFormat": _BUNDLE_TYPE,
        "contentSize": str(contents.bundles[each.metadata.path].size_bytes),
        "sha256": hashes.get(each.repository, NO_HASH),
    }


def _members(archived: Sequence[ArchivedResource]) -> Mapping[str, Sequence[str]]:
    """The members of each folder of the archive."""
    found: dict[str, list[str]] = {}
    for each in archived[1:]:
        if each.former is not None:
            continue
        folder = each.name.rstrip("/").rpartition("/")[0]
        found.setdefault(f"{folder}/", []).append(each.name)
    return found


def description(contents: PodContents, changed: Sequence[ResourcePath]) -> str:
    """A text that says what the archive contains and what it lacks."""
    url, date = contents.url_of(contents.pod.root), write_time(contents.modified_ms)
    said = [f"The Solid pod {url} as of {date}: {_CONTAINED}. {_NOT_CONTAINED}."]
    if contents.bundles:
        said.append("Git repositories are contained as bundles, which git clone reads.")
    if contents.versions:
        said.append("Former versions of documents are contained, in a folder of their own.")
    if contents.left_out:
        urls = ", ".join(map(contents.url_of, contents.left_out))
        said.append(f"Some git repositories are not contained; clone them: {urls}.")
    if changed:
        paths = ", ".join(changed)
        said.append(f"Changed during the export, so perhaps not of the same moment: {paths}.")
    return " ".join(said)


def page(
    contents: PodContents,
    archived: Sequence[ArchivedResource],
    changed: Sequence[ResourcePath] = (),
) -> Iterator[bytes]:
    """``index.html``: the contents of the archive, folder by folder, with links to the files."""
    title = escape(f"The pod {contents.pod.name}")
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f"<p>{escape(description(contents, changed))}</p>\n"
        f'<p>Owner: <a href="{escape(contents.pod.owner)}">{escape(contents.pod.owner)}</a>. '
        f'For programs, <a href="{MANIFEST}">{MANIFEST}</a> lists the same as an RO-Crate, with '
        "the URL and the SHA-256 of each file. <code>podstead pod import</code> reads it.</p>\n"
    ).encode()
    members: dict[ResourcePath, list[ArchivedResource]] = {}
    for each in archived:
        if not each.metadata.kind.is_container and each.former is None:
            path = each.metadata.path
            folder = subject_of(path) if subject_of(path).endswith("/") else parent_container(path)
            members.setdefault(folder or path, []).append(each)
    for each in archived:
        if each.metadata.kind.is_container:
            yield from _folder(contents, each, members.get(each.metadata.path, ()))
    if contents.versions:
        yield b"<h2>Former versions</h2>\n"
        yield from _table(
            _row_of(each.name, each.metadata, f"{each.version_of}, {_file_of(each.name)}")
            for each in archived
            if each.former is not None
        )
    yield b"</body>\n</html>\n"


def _folder(
    contents: PodContents, folder: ArchivedResource, files: Sequence[ArchivedResource]
) -> Iterator[bytes]:
    yield f"<h2>{escape(folder.name)}</h2>\n".encode()
    if not (files or folder.described_by or folder.repository):
        yield b"<p>No files.</p>\n"
        return
    rows = []
    if folder.repository:
        size_bytes = contents.bundles[folder.metadata.path].size_bytes
        rows.append(_row(folder.repository, _BUNDLE_TYPE, size_bytes, contents.modified_ms))
    if folder.described_by:
        rows.append(_row_of(folder.described_by, folder.metadata))
    rows += [_row_of(each.name, each.metadata) for each in files]
    yield from _table(rows)


def _table(rows: Iterable[bytes]) -> Iterator[bytes]:
    yield (
        b'<table>\n<thead><tr><th scope="col">File</th><th scope="col">Type</th>'
        b'<th scope="col">Bytes</th><th scope="col">Changed</th></tr></thead>\n<tbody>\n'
    )
    yield from rows
    yield b"</tbody>\n</table>\n"


def _file_of(name: str) -> str:
    """The name without its folder."""
    return name.rpartition("/")[2]


def _row_of(name: str, metadata: Metadata, shown: str = "") -> bytes:
    content_type = essence(metadata.content_type)
    return _row(name, content_type, metadata.size_bytes, metadata.modified_ms, shown)


def _row(name: str, content_type: str, size_bytes: int, modified_ms: int, shown: str = "") -> bytes:
    text = escape(shown or _file_of(name))
    return (
        f'<tr><td><a href="{escape(iri_of(name))}">{text}</a></td>'
        f"<td>{escape(content_type)}</td>"
        f"<td>{size_bytes:,}</td><td>{write_time(modified_ms)[:10]}</td></tr>\n"
    ).encode()


def iri_of(name: str) -> str:
    """The relative IRI of a file in the archive."""
    return "".join(
        quote(character, safe=_IRI_SAFE) if character.isascii() else character for character in name
    )


_STYLE: Final = """\
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 0.5rem; }
table { width: 100%; table-layout: fixed; border-collapse: collapse; }
th, td { text-align: start; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; }
th:nth-child(2) { width: 30%; }
th:nth-child(3), td:nth-child(3) { width: 6.5rem; text-align: end; white-space: nowrap; }
th:nth-child(4), td:nth-child(4) { width: 6rem; white-space: nowrap; }
td { font-variant-numeric: tabular-nums; }
tr { border-block-end: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
@media (max-width: 40rem) { th:nth-child(2), td:nth-child(2) { display: none; } }
"""
