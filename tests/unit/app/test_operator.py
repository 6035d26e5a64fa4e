"""When the next backup of a series is made, and what happens when one fails."""

from __future__ import annotations

import logging
import shutil
import socket
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Never

import pytest

from podstead.app.adapters.foreign import NOTED_AGAIN_AFTER_MS, ForeignDocuments
from podstead.app.operator.backup_series import (
    RETRY_S,
    BackupSeries,
    SeriesResult,
    keep_backing_up,
)
from podstead.app.operator.copying import Place, opened_source
from podstead.app.process.certificate import Renewal, ServerKeys, prepare_keys
from podstead.config import Settings, read_settings
from podstead.core.errors import OutboundError, OwnDocument, RootUnusable
from podstead.outbound.documents import POLICIES
from podstead.outbound.foreign_documents import Purpose
from podstead.outbound.urls import parse_origin
from podstead.storage.backup.reading import MANIFEST
from podstead.storage.backup.sinks import partial_file, partial_folder
from podstead.storage.blobs.s3_location import parse_s3_location
from podstead.storage.root import prepare_root
from tests.support.certificates import Holder, holder, rsa_key
from tests.support.clock import FakeClock


class _Enough(Exception):
    """Ends the service in a test."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    prepare_root(tmp_path / "root")
    return read_settings({"root": str(tmp_path / "root")}, {}, folder=tmp_path)


@pytest.fixture
def series(settings: Settings, tmp_path: Path) -> BackupSeries:
    return BackupSeries(settings, tmp_path / "series", ())


def fail(error: Exception) -> Never:
    raise error


def no_step(_step: str, _done: int, _total: int) -> None:
    """Nobody looks."""


async def run(series: BackupSeries, *, rounds: int) -> tuple[list[SeriesResult], list[float]]:
    """The backups that are made until the service has waited so often, and the waits."""
    results: list[SeriesResult] = []
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == rounds:
            raise _Enough

    with pytest.raises(_Enough):
        await keep_backing_up(
            series, 3600, on_step=no_step, on_result=results.append, on_failure=fail, wait=wait
        )
    return results, waits


async def test_the_first_backup_is_made_at_once_and_the_next_when_it_is_due(
    series: BackupSeries,
) -> None:
    results, waits = await run(series, rounds=1)
    assert [result.folder.parent for result in results] == [series.place]
    assert 3500 < waits[0] <= 3600


async def test_a_service_that_is_started_again_goes_on_with_the_series(
    series: BackupSeries,
) -> None:
    await run(series, rounds=1)
    results, waits = await run(series, rounds=1)
    assert results == []
    assert 3500 < waits[0] <= 3600


async def test_after_a_failure_it_is_tried_again_soon(series: BackupSeries) -> None:
    shutil.rmtree(series.settings.root)
    failures: list[Exception] = []

    def wait(seconds: float) -> None:
        assert seconds == RETRY_S
        if len(failures) == 2:
            raise _Enough

    with pytest.raises(_Enough):
        await keep_backing_up(
            series,
            3600,
            on_step=no_step,
            on_result=lambda _: None,
            on_failure=failures.append,
            wait=wait,
        )
    assert "There is no data" in str(failures[0])
    assert not series.place.exists() or not list(series.place.iterdir())


async def test_an_incomplete_backup_is_not_part_of_the_series(series: BackupSeries) -> None:
    await run(series, rounds=1)
    (folder,) = series.existing().values()
    (folder / MANIFEST).unlink()
    assert series.existing() == {}
    assert series.due_in_s(3600, now_s=datetime.now(tz=UTC).timestamp()) == 0


def test_what_a_killed_backup_left_is_removed_by_the_next(tmp_path: Path) -> None:
    abandoned = tmp_path / ".b.partial-1"
    abandoned.mkdir()
    (abandoned / "file").write_text("x")
    with partial_folder(tmp_path / "a") as in_progress, partial_folder(tmp_path / "b"):
        assert in_progress.exists(), "one in progress is not abandoned"
        assert not abandoned.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("partial", [partial_folder, partial_file])
def test_a_backup_that_fails_leaves_nothing(
    tmp_path: Path, partial: Callable[[Path], AbstractContextManager[Path]]
) -> None:
    with pytest.raises(_Enough), partial(tmp_path / "backup"):
        raise _Enough
    assert list(tmp_path.iterdir()) == []


# --- copied places -----------------------------------------------------------------------------
#
# What ``podstead copy`` refuses: places that share something, and a source without data.


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


# --- foreign -----------------------------------------------------------------------------------
#
# Whom does a deployment never ask? Itself, by whichever name, and its own network.


# Hosts that no URL can name do not keep the others from counting.
ALIASES = ("alias.example:8443", "no..host", "x:99999")
OWN = [
    ("https://pod.example", 3000, "https://pod.example/alice/"),
    ("https://pod.example", 3000, "http://pod.example:443/alice/"),
    ("https://pod.example", 3000, "https://alias.example:8443/alice/"),
    ("https://pod.example", 3000, "http://localhost:3000/alice/"),
    ("https://pod.example", 3000, "http://127.0.0.1:3000/alice/"),
    ("http://localhost:8080", 3000, "http://127.0.0.1:3000/alice/"),
    ("http://localhost:8080", 3000, "https://pod.localhost:8080/alice/"),
    ("http://localhost", 0, "http://[::1]/alice/"),
]


@pytest.mark.parametrize(("base_url", "port", "url"), OWN)
async def test_no_document_is_fetched_from_a_name_of_our_own(
    tmp_path: Path, base_url: str, port: int, url: str
) -> None:
    """Nor if the operator lists the place as a private origin by mistake."""
    listed = tuple(parse_origin(f"http://{host}:3000") for host in ("localhost", "127.0.0.1"))
    settings = Settings(
        root=tmp_path, base_url=base_url, port=port, host_aliases=ALIASES, private_origins=listed
    )
    foreign = ForeignDocuments(settings, FakeClock())
    try:
        for purpose in POLICIES:
            with pytest.raises(OwnDocument):
                await foreign.fetch(url, purpose)
        with pytest.raises(OwnDocument):
            await foreign.origin_of(url)
    finally:
        await foreign.close()


async def test_a_neighbour_on_this_machine_is_another_server(tmp_path: Path) -> None:
    """A-190"""
    settings = Settings(root=tmp_path, base_url="http://localhost:8080", port=3000)
    foreign = ForeignDocuments(settings, FakeClock())
    try:
        with pytest.raises(OutboundError) as caught:
            await foreign.fetch("http://localhost:1/", Purpose.WEB_ID)  # where nobody listens
        assert not isinstance(caught.value, OwnDocument)
    finally:
        await foreign.close()


BLOCKED = [
    ("https://10.0.0.1/x", "10.0.0.1", "address"),
    ("https://localhost/x", "localhost", "host"),
    ("https://2130706433/x", "2130706433", "host"),
    ("https://inside.example:22/x", "inside.example", "port"),
    ("https://inside.example/x?token=secret", "inside.example", "address"),
]


@pytest.mark.parametrize(("url", "host", "rule"), BLOCKED)
async def test_a_request_into_the_own_network_is_blocked_and_noted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    url: str,
    host: str,
    rule: str,
) -> None:
    """A-184, A-183: whichever document was asked for; once an hour, with the host and no more."""

    def look_up(_host: str, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.168.0.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    clock = FakeClock()
    foreign = ForeignDocuments(Settings(root=tmp_path, base_url="https://pod.example"), clock)
    try:
        for purpose in (Purpose.WEB_ID, Purpose.PROVIDER, Purpose.GROUP):
            with pytest.raises(OutboundError):
                await foreign.fetch(url, purpose)
        assert _noted(caplog) == [(host, rule)]
        clock.advance(NOTED_AGAIN_AFTER_MS / 1000)
        with pytest.raises(OutboundError):
            await foreign.fetch(url, Purpose.CLIENT)
        assert _noted(caplog) == [(host, rule)] * 2
    finally:
        await foreign.close()
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    "url", ["https://pod.example/alice/", "ftp://elsewhere.example/", "not a url", "https://a@b/"]
)
async def test_what_is_no_request_into_the_own_network_is_not_noted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, url: str
) -> None:
    settings = Settings(root=tmp_path, base_url="https://pod.example")
    foreign = ForeignDocuments(settings, FakeClock())
    try:
        with pytest.raises(OutboundError):
            await foreign.fetch(url, Purpose.WEB_ID)
    finally:
        await foreign.close()
    assert _noted(caplog) == []


def _noted(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Host and rule of each warning that the audit log has."""
    return [
        (vars(each)["host"], vars(each)["rule"])
        for each in caplog.records
        if (each.name, each.levelno) == ("podstead.audit", logging.WARNING)
    ]


# --- renewal -----------------------------------------------------------------------------------
#
# When renewed certificates are judged, and what comes of that; with real files and no server.


@dataclass
class Files:
    """Files of a certificate and a key, and what becomes of those that are found good."""

    folder: Path
    settings: Settings
    adopted: list[ServerKeys] = field(default_factory=list)

    def write(self, someone: Holder) -> None:
        someone.write(self.folder)

    def renewal(self) -> Renewal:
        first = prepare_keys(self.settings)
        assert first is not None
        return Renewal(
            self.settings, lambda: [first, *self.adopted][-1].content_hash, self.adopted.append
        )

    def contents(self) -> list[str]:
        """The certificates that were adopted."""
        return [_certificate(each) for each in self.adopted]


def _certificate(keys: ServerKeys) -> str:
    if keys.pair is not None:
        assert keys.context is None
        return keys.pair.chain.read_text(encoding="ascii")
    assert keys.context is not None
    return keys.context.connection().handshake().server_certificate or ""


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.feature("webid_tls"))])
def files(tmp_path: Path, request: pytest.FixtureRequest) -> Files:
    certificate, key = holder(key=rsa_key(0)).write(tmp_path)
    settings = Settings(ssl_cert=certificate, ssl_key=key)
    if request.param:
        settings = settings.with_values(webid_tls=True)
    return Files(tmp_path, settings)


def test_nothing_happens_while_the_files_stay_as_they_are(files: Files) -> None:
    renewal = files.renewal()
    for at_once in (False, False, True):
        renewal.look(at_once=at_once)
    assert files.adopted == []


def test_unchanged_files_are_not_a_renewal(files: Files) -> None:
    renewal = files.renewal()
    certificate = files.settings.ssl_cert
    assert certificate is not None
    content = certificate.read_bytes()
    certificate.unlink()
    certificate.write_bytes(content)
    renewal.look(at_once=True)
    assert files.adopted == []


def test_a_change_applies_once_it_has_lasted_from_one_check_to_the_next(files: Files) -> None:
    renewal = files.renewal()
    new = holder(key=rsa_key(1))
    files.write(new)
    renewal.look(at_once=False)
    assert files.adopted == []
    renewal.look(at_once=False)
    assert files.contents() == [new.pem]
    renewal.look(at_once=False)
    assert len(files.adopted) == 1


def test_a_change_applies_at_once_if_the_operator_requests_it(files: Files) -> None:
    renewal = files.renewal()
    files.write(holder(key=rsa_key(1)))
    renewal.look(at_once=True)
    assert len(files.adopted) == 1


def test_files_that_are_still_being_written_are_not_judged(
    files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    """The certificate is there, its key is not yet."""
    renewal = files.renewal()
    certificate, key = files.settings.ssl_cert, files.settings.ssl_key
    assert certificate is not None
    assert key is not None
    old_key = key.read_bytes()
    new = holder(key=rsa_key(1))
    files.write(new)
    new_key = key.read_bytes()
    key.write_bytes(old_key)
    renewal.look(at_once=False)
    key.unlink()
    key.write_bytes(new_key)
    renewal.look(at_once=False)
    assert files.adopted == []
    assert caplog.records == []
    renewal.look(at_once=False)
    assert files.contents() == [new.pem]


@pytest.mark.parametrize("trouble", ["missing", "broken", "of another key"])
def test_what_does_not_serve_is_reported_once_and_what_follows_is_judged_again(
    files: Files, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    renewal = files.renewal()
    certificate = files.settings.ssl_cert
    assert certificate is not None
    if trouble == "missing":
        certificate.unlink()
    else:
        certificate.write_text("x" if trouble == "broken" else holder(key=rsa_key(1)).pem)
    for _ in range(4):
        renewal.look(at_once=False)
    assert files.adopted == []
    (record,) = caplog.records
    assert record.getMessage().startswith("The certificate in use stays")
    assert str(certificate) in record.getMessage()
    files.write(holder(key=rsa_key(2)))
    for _ in range(2):
        renewal.look(at_once=False)
    assert len(files.adopted) == 1


class Waits(threading.Event):
    """Lets so many waits pass without a signal, and ends the thread."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.waited_s: list[float | None] = []
        self._most = most

    def wait(self, timeout: float | None = None) -> bool:
        if len(self.waited_s) == self._most:
            raise Finished
        self.waited_s.append(timeout)
        return self.is_set()


class Finished(Exception):
    """The thread would look for ever."""


def test_the_files_are_checked_every_minute_without_a_signal(files: Files) -> None:
    renewal, asked = files.renewal(), Waits(2)
    new = holder(key=rsa_key(1))
    files.write(new)
    with pytest.raises(Finished):
        renewal.look_regularly(asked)
    assert asked.waited_s == [60, 60]
    assert files.contents() == [new.pem]


def test_a_signal_has_the_files_judged_at_once(files: Files) -> None:
    renewal, asked = files.renewal(), Waits(1)
    files.write(holder(key=rsa_key(1)))
    asked.set()
    with pytest.raises(Finished):
        renewal.look_regularly(asked)
    assert len(files.adopted) == 1
    assert not asked.is_set()


def test_without_tls_there_is_nothing_to_prepare() -> None:
    assert prepare_keys(Settings()) is None
