"""What a report of an import counts."""

from __future__ import annotations

from podstead.core.identifiers import ResourcePath
from podstead.resources.importing.values import ImportReport, NotTaken


def test_every_resource_is_counted_once() -> None:
    left = [NotTaken(ResourcePath(f"/alice/{number}"), "") for number in range(32)]
    report = ImportReport(
        documents=1, containers=2, descriptions=4, rules=8, already_there=16, not_taken=left
    )
    assert report.resources == 63
