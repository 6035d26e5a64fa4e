"""Laws of canonical paths (P-47, P-50): one spelling each, a hierarchy, and no way to crash."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import BadRequest
from podstead.core.identifiers import (
    ROOT,
    ResourcePath,
    acl_of,
    ancestors,
    auxiliary_kind,
    description_of,
    is_container,
    parent_container,
    parse_path,
    segment_name,
    slash_variant,
    storage_root,
    subject_of,
)

UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
"""RFC 3986 section 2.3: escaped or not, these are the same."""

segments = (
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=12)
    | st.sampled_from(["a b", "x.acl", "y.meta", "..x", ".", "...", "%", "a/b", "\\", "é", "a;b,c"])
).filter(lambda text: text not in (".", ".."))


@st.composite
def spellings(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """One spelling of a path, and the decoded segments that it names."""
    decoded = [segment.encode() for segment in draw(st.lists(segments, max_size=5))]
    raw = b"".join(b"/" + _spelled(draw, segment) for segment in decoded)
    if not decoded or draw(st.booleans()):
        return raw + b"/", [*decoded, b""]
    return raw, decoded


def _spelled(draw: st.DrawFn, segment: bytes) -> bytes:
    """Each byte as itself or escaped, in either case of hex digits."""
    parts = []
    for byte in segment:
        if byte in UNRESERVED and draw(st.booleans()):
            parts.append(bytes([byte]))
        else:
            parts.append(draw(st.sampled_from([b"%%%02X", b"%%%02x"])) % byte)
    return b"".join(parts)


paths = spellings().map(lambda spelled: parse_path(spelled[0]))


@given(spellings())
def test_a_path_names_the_segments_that_were_spelled(spelled: tuple[bytes, list[bytes]]) -> None:
    raw, decoded = spelled
    path = parse_path(raw)
    assert [unquote_to_bytes(segment) for segment in path[1:].split("/")] == decoded


@given(spellings())
def test_every_spelling_of_a_path_is_the_same(spelled: tuple[bytes, list[bytes]]) -> None:
    raw, decoded = spelled
    # The standard library's spelling, which escapes all it can, and the other way round.
    most = "/" + "/".join(quote(segment, safe="") for segment in decoded)
    least = "/" + "/".join(quote(segment, safe="!$&'()*+,;=:@~") for segment in decoded)
    assert parse_path(raw) == parse_path(most.encode()) == parse_path(least.encode())


@given(paths)
def test_a_canonical_path_is_itself(path: ResourcePath) -> None:
    assert parse_path(path.encode("ascii")) == path


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda raw: b"/" + raw))
def test_any_bytes_are_a_canonical_path_or_a_bad_request(raw: bytes) -> None:
    try:
        path = parse_path(raw)
    except BadRequest:
        return
    assert parse_path(path.encode("ascii")) == path
    assert path.startswith("/")
    parts = path[1:].split("/")
    assert all(part not in ("", ".", "..") for part in parts[:-1])
    assert parts[-1] not in (".", "..")
    decoded = unquote_to_bytes(path).decode("utf-8")
    assert not any(ord(character) < 0x20 or ord(character) == 0x7F for character in decoded)


@given(st.text("/.%2eEfF5cC\\ab", max_size=20))
def test_no_mixture_of_dots_and_escapes_climbs(text: str) -> None:
    try:
        path = parse_path(f"/{text}".encode())
    except BadRequest:
        return
    for part in path.split("/")[1:-1]:
        assert unquote_to_bytes(part) not in (b"", b".", b"..")


@given(paths)
def test_the_ancestors_are_the_parents_one_after_the_other(path: ResourcePath) -> None:
    climbed = []
    above = parent_container(path)
    while above is not None:
        climbed.append(above)
        above = parent_container(above)
    assert list(ancestors(path)) == climbed
    for container in climbed:
        assert is_container(container)
        assert path.startswith(container)
        assert len(container) < len(path)
    assert (climbed[-1:] == [ROOT]) is (path != ROOT)


@given(paths)
def test_a_path_is_its_parent_and_its_name(path: ResourcePath) -> None:
    parent = parent_container(path)
    if parent is None:
        assert path == ROOT
        return
    name = segment_name(path)
    assert parent + name == path
    assert "/" not in name[:-1]
    assert name != "/"
    assert parse_path(f"{parent}{name}".encode()) == path


@given(paths)
def test_both_slash_forms_are_each_others_and_have_the_same_parent(path: ResourcePath) -> None:
    """P-47."""
    if path == ROOT:
        return
    twin = slash_variant(path)
    assert slash_variant(twin) == path
    assert is_container(twin) is not is_container(path)
    assert parent_container(twin) == parent_container(path)
    assert parse_path(twin.encode()) == twin


@given(paths)
def test_auxiliaries_lead_back_to_their_subject_and_lie_in_its_storage(path: ResourcePath) -> None:
    """W-1, C-30."""
    for auxiliary in (acl_of(path), description_of(path)):
        assert auxiliary_kind(auxiliary) is not None
        assert subject_of(auxiliary) == path
        assert parse_path(auxiliary.encode()) == auxiliary
        if storage_root(path) is not None:
            assert storage_root(auxiliary) == storage_root(path)
    if auxiliary_kind(path) is None:
        assert subject_of(path) == path


@given(paths)
def test_a_storage_is_the_last_container_below_the_servers_root(path: ResourcePath) -> None:
    root = storage_root(path)
    containers = [c for c in (path, *ancestors(path)) if is_container(c) and c != ROOT]
    assert root == (containers[-1] if containers else None)
