"""Every name that a Slug proposes is a canonical segment of one container (C-5, P-50)."""

from __future__ import annotations

from urllib.parse import quote, unquote_to_bytes

from hypothesis import given
from hypothesis import strategies as st

from podstead.core.errors import AccessDenied, BadRequest
from podstead.core.header_fields import proposed_name
from podstead.core.identifiers import auxiliary_kind, is_container, parent_container, parse_path

PLAIN_NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1
).filter(
    lambda name: (
        "/" not in name
        and name not in (".", "..")
        and not name.endswith((".acl", ".meta"))
        and len(name.encode()) <= 255
    )
)


@given(
    st.binary() | st.text().map(lambda text: quote(text, errors="replace").encode()), st.booleans()
)
def test_no_bytes_crash_and_every_name_makes_a_member_of_the_container(
    slug: bytes, wants_container: bool
) -> None:
    try:
        name = proposed_name(slug, wants_container=wants_container)
    except (AccessDenied, BadRequest):
        return
    if name is None:
        return
    path = parse_path(b"/box/" + name.encode("ascii"))
    assert path == f"/box/{name}"
    assert parent_container(path) == "/box/"
    assert is_container(path) is wants_container
    assert auxiliary_kind(path) is None


@given(PLAIN_NAMES)
def test_a_plain_name_survives_whether_or_not_it_comes_encoded(name: str) -> None:
    """C-4, RFC 5023 section 9.7, with the standard library's codec."""
    proposed = proposed_name(quote(name, safe="").encode(), wants_container=False)
    assert proposed is not None
    assert unquote_to_bytes(proposed) == name.encode()
    if "%" not in name:
        assert proposed_name(name.encode(), wants_container=False) == proposed
