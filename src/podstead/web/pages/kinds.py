"""Determines the kind of content, for its icon and its preview.

The media type decides; the name decides only if the type is generic (``text/plain`` and
``application/octet-stream``), because that is how many clients upload source code.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from podstead.core.media_types import RDF_TYPES

_NAMELESS: Final = frozenset({"application/octet-stream", "text/plain"})


class Kind(Enum):
    """The kinds of content. The values are the names of the icons."""

    FOLDER = "folder"
    LINKED_DATA = "linked-data"
    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    PDF = "pdf"
    MARKDOWN = "markdown"
    TABLE = "table"
    DOCUMENT = "text-document"
    SPREADSHEET = "spreadsheet"
    PRESENTATION = "presentation"
    SOURCE = "source"
    TEXT = "text"
    ARCHIVE = "archive"
    OTHER = "other"

    @property
    def is_text(self) -> bool:
        """Whether the content is text that a person can read and edit."""
        return self in _TEXTS


_TEXTS: Final = frozenset({Kind.LINKED_DATA, Kind.MARKDOWN, Kind.TABLE, Kind.SOURCE, Kind.TEXT})

_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
_KINDS: Final = MappingProxyType(
    {
        **dict.fromkeys(RDF_TYPES, Kind.LINKED_DATA),
        "application/pdf": Kind.PDF,
        "image/svg+xml": Kind.IMAGE,
        "text/markdown": Kind.MARKDOWN,
        "text/x-markdown": Kind.MARKDOWN,
        "text/csv": Kind.TABLE,
        "text/tab-separated-values": Kind.TABLE,
        "text/plain": Kind.TEXT,
        "text/vcard": Kind.TEXT,
        "text/calendar": Kind.TEXT,
        "application/msword": Kind.DOCUMENT,
        "application/rtf": Kind.DOCUMENT,
        "application/vnd.oasis.opendocument.text": Kind.DOCUMENT,
        "application/vnd.oasis.opendocument.spreadsheet": Kind.SPREADSHEET,
        "application/vnd.oasis.opendocument.presentation": Kind.PRESENTATION,
        "application/vnd.ms-excel": Kind.SPREADSHEET,
        "application/vnd.ms-powerpoint": Kind.PRESENTATION,
        f"{_OFFICE}.wordprocessingml.document": Kind.DOCUMENT,
        f"{_OFFICE}.spreadsheetml.sheet": Kind.SPREADSHEET,
        f"{_OFFICE}.presentationml.presentation": Kind.PRESENTATION,
        "application/zip": Kind.ARCHIVE,
        "application/gzip": Kind.ARCHIVE,
        "application/x-tar": Kind.ARCHIVE,
        "application/x-bzip2": Kind.ARCHIVE,
        "application/x-xz": Kind.ARCHIVE,
        "application/x-7z-compressed": Kind.ARCHIVE,
        "application/zstd": Kind.ARCHIVE,
    }
)


_DRAWINGS: Final = frozenset({"image/svg+xml", "image/x-icon", "image/vnd.microsoft.icon"})


def is_photo(media_type: str) -> bool:
    """Whether content of a media type, without parameters, belongs among photos: all pictures but
    drawings."""
    return media_type.startswith("image/") and media_type not in _DRAWINGS


def _spread(names: Mapping[str, str]) -> dict[str, str]:
    """Each of several names, separated by spaces, with the key that they stand behind."""
    return {name: key for key, listed in names.items() for name in listed.split()}


_LANGUAGES: Final = MappingProxyType(
    _spread(
        {
            "bash": "application/x-sh text/x-shellscript",
            "c": "text/x-c",
            "css": "text/css",
            "go": "text/x-go",
            "graphql": "application/graphql",
            "html": "application/xhtml+xml text/html",
            "java": "text/x-java",
            "javascript": "application/ecmascript application/javascript text/javascript",
            "json": "application/json application/ld+json",
            "markdown": "text/markdown",
            "python": "text/x-python",
            "rust": "text/x-rust",
            "sparql": "application/sparql-query application/sparql-update",
            "sql": "application/sql",
            "toml": "application/toml",
            "turtle": (
                "application/n-quads application/n-triples application/trig text/n3 text/turtle"
            ),
            "typescript": "application/typescript text/typescript",
            "xml": "application/rdf+xml application/xml image/svg+xml text/xml",
            "yaml": "application/x-yaml application/yaml text/yaml",
        }
    )
)
_ENDINGS: Final = MappingProxyType(
    _spread(
        {
            "bash": "bash sh",
            "c": "c h",
            "cpp": "cc cpp hpp",
            "csharp": "cs",
            "css": "css",
            "diff": "diff patch",
            "go": "go",
            "graphql": "graphql",
            "html": "htm html",
            "ini": "ini",
            "java": "java",
            "javascript": "js mjs",
            "json": "json jsonld",
            "kotlin": "kt",
            "latex": "tex",
            "lua": "lua",
            "php": "php",
            "python": "py",
            "ruby": "rb",
            "rust": "rs",
            "sparql": "rq sparql",
            "sql": "sql",
            "swift": "swift",
            "toml": "toml",
            "turtle": "n3 nt ttl",
            "typescript": "ts tsx",
            "xml": "xml",
            "yaml": "yaml yml",
        }
    )
)
LANGUAGES: Final = frozenset({*_LANGUAGES.values(), *_ENDINGS.values()})
"""The languages that are highlighted, by the names of Pygments. No other lexer is ever loaded."""

_KINDS_OF_ENDINGS: Final = MappingProxyType(
    {
        "csv": Kind.TABLE,
        "doc": Kind.DOCUMENT,
        "docx": Kind.DOCUMENT,
        "log": Kind.TEXT,
        "markdown": Kind.MARKDOWN,
        "md": Kind.MARKDOWN,
        "odp": Kind.PRESENTATION,
        "ods": Kind.SPREADSHEET,
        "odt": Kind.DOCUMENT,
        "ppt": Kind.PRESENTATION,
        "pptx": Kind.PRESENTATION,
        "tsv": Kind.TABLE,
        "txt": Kind.TEXT,
        "xls": Kind.SPREADSHEET,
        "xlsx": Kind.SPREADSHEET,
    }
)


def kind_of(essence: str, name: str) -> Kind:
    """The kind of a document with this media type (without parameters) and name.

    An octet stream whose name suggests text is shown as text, so that people can see what it is.
    """
    known = _KINDS.get(essence)
    if essence in _NAMELESS:
        by_name = Kind.SOURCE if _ending(name) in _ENDINGS else known or Kind.OTHER
        return _KINDS_OF_ENDINGS.get(_ending(name), by_name)
    if known is None and (essence in _LANGUAGES or essence.endswith(("+json", "+xml"))):
        return Kind.SOURCE
    return known or _FAMILIES.get(essence.partition("/")[0], Kind.OTHER)


_FAMILIES: Final = MappingProxyType(
    {"image": Kind.IMAGE, "video": Kind.VIDEO, "audio": Kind.AUDIO, "text": Kind.TEXT}
)


def language_of(essence: str, name: str) -> str | None:
    """The language to highlight a text in; ``None`` if there is none."""
    if essence in _NAMELESS:
        return _ENDINGS.get(_ending(name))
    if essence in _LANGUAGES:
        return _LANGUAGES[essence]
    if essence.endswith("+json"):
        return "json"
    return "xml" if essence.endswith("+xml") else None


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""
