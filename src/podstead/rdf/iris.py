"""Abbreviating IRIs, as prefixed names or relative references.

Only forms are produced that every parser expands to the same IRI: local names are plain ASCII
words, and references are relative only if RFC 3986, section 5.2, resolves them unambiguously.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from podstead.core.caches import memoize_short_keys
from podstead.core.vocab import COMMON_PREFIXES

_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_\-]*\Z")
_LOCAL_NAME = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_\-])?)?\Z")
_DOT_SEGMENT = re.compile(r"(?:\A|/)\.\.?(?:/|\Z)")
_AFTER_PATH = re.compile(r"[?#]")
_COMMON_NAMES = {namespace: prefix for prefix, namespace in COMMON_PREFIXES.items()}


@memoize_short_keys
def is_plain_prefix(prefix: str) -> bool:
    """Whether the prefix is an ASCII word, which every format accepts."""
    return _PREFIX.match(prefix) is not None


class PrefixTable:
    """The prefixes available to a serialized document: its own, then the customary ones.

    ``used`` maps the prefixes that were actually used to namespaces. ``empty`` allows the empty
    prefix (as in Turtle's ``:me``).
    """

    __slots__ = ("_declared", "_own", "_without", "used")

    def __init__(
        self,
        prefixes: Mapping[str, str],
        *,
        empty: bool = False,
        without: Container[str] = (),
    ) -> None:
        self._declared = prefixes
        self._own = {
            namespace: prefix
            for prefix, namespace in prefixes.items()
            if is_plain_prefix(prefix) or (empty and prefix == "")
        }
        self._without = without
        self.used: dict[str, str] = {}

    def compact(self, iri: str) -> str | None:
        """``prefix:local``, or ``None`` if no prefix matches or the rest is not a plain name."""
        name = _split(iri)
        if name is None:
            return None
        namespace, local = name
        prefix = self._own.get(namespace)
        if prefix is None:
            prefix = _COMMON_NAMES.get(namespace)
            if prefix is None or prefix in self._declared:  # for another namespace
                return None
        if prefix in self._without:
            return None
        self.used[prefix] = namespace
        return f"{prefix}:{local}"


@memoize_short_keys
def _split(iri: str) -> tuple[str, str] | None:
    """The namespace and the local name of an IRI; ``None`` if the latter is not a plain name."""
    end = len(namespace_of(iri))
    return (iri[:end], iri[end:]) if _LOCAL_NAME.match(iri, end) else None


def namespace_of(iri: str) -> str:
    """The IRI up to its local name."""
    return iri[: (iri.rfind("#") + 1) or (iri.rfind("/") + 1) or (iri.rfind(":") + 1)]


class RelativeReferences:
    """Abbreviates IRIs relative to one base IRI, which has neither query nor fragment."""

    __slots__ = ("_base", "container")

    def __init__(self, base_iri: str | None) -> None:
        self._base = base_iri
        # What every IRI with a reference starts with.
        self.container = "" if base_iri is None else base_iri[: base_iri.rfind("/") + 1]

    def reference(self, iri: str) -> str:
        """A relative reference within the base document or its container; otherwise the IRI."""
        base = self._base
        if base is None or not iri.startswith(self.container):
            return iri
        if iri.startswith(base) and iri[len(base) : len(base) + 1] in ("", "#"):
            return iri[len(base) :]
        return relative_name(iri[len(self.container) :]) or iri


def relative_name(rest: str) -> str | None:
    """Turn what follows a container's IRI into a reference relative to it or to one of its members.

    ``None`` if no relative reference is possible: an empty first segment would become an authority,
    a dot segment would be removed, and a bare query would be resolved against the base document.
    """
    if rest == "":
        return "./"
    after_path = _AFTER_PATH.search(rest)
    path = rest if after_path is None else rest[: after_path.start()]
    if path == "" or path.startswith("/") or _DOT_SEGMENT.search(path):
        return None
    # "a:b" would be read as an absolute IRI with the scheme "a" (RFC 3986 section 4.2).
    return f"./{rest}" if ":" in path.partition("/")[0] else rest
