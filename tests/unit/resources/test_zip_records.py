"""Records of ZIP archives that the server writes itself; Python's zipfile reads them."""

from __future__ import annotations

import io
import stat
import zipfile
from datetime import UTC, datetime

import pytest

from podstead.resources.exporting.archive import (
    ZipEntry,
    central_header,
    end_of_archive,
    local_header,
)


@pytest.mark.parametrize(
    ("modified", "read"),
    [
        (datetime(1969, 12, 31, tzinfo=UTC), (1980, 1, 1, 0, 0, 0)),
        (datetime(1980, 1, 1, tzinfo=UTC), (1980, 1, 1, 0, 0, 0)),
        (datetime(2026, 2, 28, 12, 30, 44, tzinfo=UTC), (2026, 2, 28, 12, 30, 44)),
        (datetime(2150, 1, 1, tzinfo=UTC), (2107, 12, 31, 23, 59, 58)),
    ],
)
@pytest.mark.parametrize(("name", "mode"), [("a/", "drwxr-xr-x"), ("a.txt", "-rw-r--r--")])
def test_an_entry_has_the_next_time_that_zip_can_express(
    modified: datetime, read: tuple[int, ...], name: str, mode: str
) -> None:
    entry = ZipEntry(name, 0, int(modified.timestamp() * 1000))
    header, central = local_header(entry, 0), central_header(entry, 0, 0)
    end = end_of_archive(entries=1, offset=len(header), size_bytes=len(central))
    [info] = zipfile.ZipFile(io.BytesIO(header + central + end)).infolist()
    assert info.date_time == read
    assert stat.filemode(info.external_attr >> 16) == mode
