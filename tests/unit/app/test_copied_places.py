"""What ``podstead copy`` refuses: places that share something, and a source without data."""

from __future__ import annotations

from pathlib import Path

import pytest

from podstead.app.operator.copying import Place, opened_source
from podstead.core.errors import RootUnusable
from podstead.storage.blobs.s3_location import parse_s3_location

ROOT = Path("/data")
DATABASE = "postgresql://db.example/podstead"


def place(bodies: str, root: Path | None = None) -> Place:
    where = parse_s3_location(bodies) if bodies.startswith("s3:") else Path(bodies)
    return Place(root, DATABASE if root is None else None, where)


SAME = [
    (place("s3://bucket/pods"), place("s3://bucket/pods?region=eu-1", ROOT)),
    (place("s3://bucket/pods"), place("s3://bucket/pods/?endpoint=https://s3.example", ROOT)),
    (place("/data/blobs"), Place(ROOT)),
    (place("/mnt/bodies"), place("/mnt/../mnt/bodies", ROOT)),
]
APART = [
    (place("s3://bucket/pods"), place("s3://bucket/others", ROOT)),
    (
        place("s3://bucket/pods?endpoint=https://one.example"),
        place("s3://bucket/pods?endpoint=https://two.example", ROOT),
    ),
    (place("/mnt/bodies"), Place(ROOT)),
    (place("s3://bucket/pods"), Place(ROOT)),
]


@pytest.mark.parametrize(
    ("places", "expected"),
    [*((places, True) for places in SAME), *((places, False) for places in APART)],
)
def test_bodies_in_one_place_are_shared(places: tuple[Place, Place], *, expected: bool) -> None:
    """After the copy, each of two servers would remove bodies of the other."""
    one, other = places
    assert one.shares_with(other) is other.shares_with(one) is expected


def test_a_source_without_data_is_named_as_the_command_calls_it(tmp_path: Path) -> None:
    with (
        pytest.raises(RootUnusable, match=f"no data in {tmp_path}/none. .* --from"),
        opened_source(Place(tmp_path / "none")),
    ):
        pass
