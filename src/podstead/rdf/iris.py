"""How is an IRI written short? As a prefixed name, or relative to the document it stands in.

Only forms are produced that every parser reads back as the same IRI: local names are plain ASCII
words, and a reference is relative only where RFC 3986 section 5.2 resolves it without doubt.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from podstead.core.vocab import COMMON_PREFIXES

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*\Z")
_LOCAL_NAME = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_\-])?)?\Z")
_DOT_SEGMENT = re.compile(r"(?:\A|/)\.\.?(?:/|\Z)")
_AFTER_PATH = re.compile(r"[?#]")
_COMMON_NAMES = {namespace: prefix for prefix, namespace in COMMON_PREFIXES.items()}


def is_plain_prefix(prefix: str) -> bool:
    """Whether every format takes the prefix as it is: an ASCII word."""
    return _PREFIX.match(prefix) is not None


class PrefixTable:
    """The prefixes that one written document may use: its own, then the customary ones.

    ``used`` are those that were, by prefix. ``empty`` allows the empty prefix (Turtle's ``:me``).
    """

    __slots__ = ("_names", "used")

    def __init__(
        self,
        prefixes: Mapping[str, str],
        *,
        empty: bool = False,
        without: Container[str] = (),
    ) -> None:
        names = {
            namespace: prefix
            for prefix, namespace in prefixes.items()
            if is_plain_prefix(prefix) or (empty and prefix == "")
        }
        for namespace, prefix in _COMMON_NAMES.items():
            if prefix not in prefixes and namespace not in names:
                names[namespace] = prefix
        self._names = {
            namespace: prefix for namespace, prefix in names.items() if prefix not in without
        }
        self.used: dict[str, str] = {}

    def compact(self, iri: str) -> str | None:
        """``prefix:local``, or ``None`` where no prefix fits or the rest is no plain name."""
        end = _namespace_end(iri)
        namespace = iri[:end]
        prefix = self._names.get(namespace)
        if prefix is None or not _LOCAL_NAME.match(iri, end):
            return None
        self.used[prefix] = namespace
        return f"{prefix}:{iri[end:]}"


def _namespace_end(iri: str) -> int:
    return (iri.rfind("#") + 1) or (iri.rfind("/") + 1) or (iri.rfind(":") + 1)


class RelativeReferences:
    """Writes IRIs relative to one base IRI, which has neither query nor fragment."""

    __slots__ = ("_base", "_container")

    def __init__(self, base_iri: str | None) -> None:
        self._base = base_iri
        self._container = "" if base_iri is None else base_iri[: base_iri.rfind("/") + 1]

    def reference(self, iri: str) -> str:
        """A reference within the base document or the container it lies in; else the IRI."""
        base = self._base
        if base is None or not iri.startswith(self._container):
            return iri
        if iri.startswith(base) and iri[len(base) : len(base) + 1] in ("", "#"):
            return iri[len(base) :]
        return relative_name(iri[len(self._container) :]) or iri


def relative_name(rest: str) -> str | None:
    """What follows a container's IRI, as a reference against it or against a member of it.

    ``None`` where no relative reference can say it: an empty first segment would make it an
    authority, a dot segment would vanish, a bare query would go to the base document.
    """
    if rest == "":
        return "./"
    after_path = _AFTER_PATH.search(rest)
    path = rest if after_path is None else rest[: after_path.start()]
    if path == "" or path.startswith("/") or _DOT_SEGMENT.search(path):
        return None
    # "a:b" would be read as an absolute IRI with the scheme "a" (RFC 3986 section 4.2).
    return f"./{rest}" if ":" in path.partition("/")[0] else rest
