"""When renewed certificates are judged, and what comes of that; with real files and no server."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from podstead.app.process.certificate import Renewal, ServerKeys, prepare_keys
from podstead.config import Settings
from tests.support.certificates import Holder, holder, rsa_key


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


@pytest.fixture(params=[False, True])
def files(tmp_path: Path, request: pytest.FixtureRequest) -> Files:
    certificate, key = holder(key=rsa_key(0)).write(tmp_path)
    settings = Settings(ssl_cert=certificate, ssl_key=key, webid_tls=request.param)
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
