"""The checks of ``podstead doctor``, beside a running server: data root, disk, clock, features."""

import asyncio
import os
import ssl
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from podstead.app.monitoring.checks import check_clock, check_disk, newest_change_ms
from podstead.app.monitoring.diagnosis import Diagnosis, good, serious, skipped, warning
from podstead.app.operator.data_root import opened_records, settings_in_effect
from podstead.app.operator.doctor_network import ClientChecks
from podstead.config import Settings
from podstead.core.errors import PodsteadError, RootUnusable
from podstead.core.messages import counted
from podstead.features import features
from podstead.outbound.probing import NotReached, probe
from podstead.storage.backup.last import read_last_backup
from podstead.storage.disk_space import DiskSpace, read_disk_usage
from podstead.storage.layout import RootLayout
from podstead.storage.record_store import RecordStore
from podstead.storage.root import root_mark, unusable
from podstead.web.probe_endpoint import KEY_BYTES, PROBES, VALID_MS, Probe

LOW_DISK_FACTOR: Final = 4
"""Free space below so many times the minimum is a warning."""
OLD_BACKUP_DAYS: Final = 7
_DAY_S: Final = 86_400
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


async def diagnose(settings: Settings) -> Sequence[Diagnosis]:
    """All findings. Raises nothing."""
    layout = RootLayout(settings.root)
    findings: list[Diagnosis] = []
    try:
        findings += [*_modes(layout), *_disk(settings, layout), _backup(settings, layout)]
    except OSError as error:
        remedy = "Run the command as the user who runs the server."
        findings.append(serious("root", str(unusable(settings.root, error)), remedy))
    findings += await asyncio.to_thread(lambda: [*_certificate_files(settings)])
    try:
        async with opened_records(settings) as records:
            findings.append(await _clock(records))
            key = await _announced(records)
            try:
                outside = ClientChecks(settings, key)
                findings += await asyncio.to_thread(lambda: [*outside.findings()])
            finally:
                await records.commit([PROBES.drop(key)])
            effective = await settings_in_effect(settings, records)
            for feature in features():
                findings += await feature.health(effective, records)
            if settings.database is not None:
                findings.append(good("database", "The database answers."))
    except PodsteadError as error:
        findings.append(_unopened(settings, error))
        without_probe = ClientChecks(settings, None)
        findings += await asyncio.to_thread(lambda: [*without_probe.findings()])
    findings += await asyncio.to_thread(lambda: [*_private_address(settings)])
    return findings


def _unopened(settings: Settings, error: PodsteadError) -> Diagnosis:
    """What to do if the records cannot be read."""
    reason = " ".join(str(error).split())
    if settings.database is None or isinstance(error, RootUnusable):
        return serious("store", f"The data root cannot be opened: {reason}", "Check --root.")
    return serious(
        "database",
        reason,
        "Start PostgreSQL, and check database: host, port, name, user and password, and that "
        "pg_hba.conf and the firewall let this machine in.",
    )


async def _announced(records: RecordStore) -> str:
    """The key of a probe that the server recognizes for a minute."""
    now_ms = records.now_ms()
    key = records.randomness.token_hex(KEY_BYTES)
    await records.commit([PROBES.put(key, Probe(now_ms), expires_ms=now_ms + VALID_MS)])
    return key


def _modes(layout: RootLayout) -> Iterator[Diagnosis]:
    root = layout.root
    if not root.is_dir():
        yield serious(
            "root", f"There is no data root {root}.", "Start the server once, or set --root."
        )
        return
    # The root need not be private if what is in it is.
    secret = [layout.database, layout.ephemeral_database, layout.keys, *_files(layout.keys)]
    exposed = [path for path in secret if path.exists() and path.stat().st_mode & _OTHERS]
    if exposed and root.stat().st_mode & _OTHERS:
        names = ", ".join(str(path) for path in exposed[:3])
        yield serious(
            "root",
            f"Other users of this machine can read {names}.",
            f"chmod 700 {root} && chmod -R go-rwx {root}",
        )
    else:
        yield good("root", f"Other users of this machine cannot read the keys and data in {root}.")
    foreign = [path for path in (root, *secret) if path.exists() and path.stat().st_uid != _uid()]
    if foreign:
        yield warning(
            "owner",
            f"{foreign[0]} belongs to another user than the one who runs this command.",
            "Run commands as the user who runs the server, so that both can write everything.",
        )


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []


def _uid() -> int:
    return os.getuid()


def _disk(settings: Settings, layout: RootLayout) -> Iterator[Diagnosis]:
    if not layout.root.is_dir():
        yield skipped("disk", "There is no data root.")
        return
    space = DiskSpace(layout.root, min_free_bytes=settings.min_free_bytes)
    usage = read_disk_usage(layout.root)
    floor_bytes = space.floor_bytes(usage)
    check = check_disk(space)
    if not check.ok:
        yield serious("disk", check.detail, "Free some space, or move the data root.")
    elif usage.free_bytes < LOW_DISK_FACTOR * floor_bytes:
        least = floor_bytes // 2**20
        detail = f"{check.detail} Below {least:,} MiB, nothing new is stored."
        yield warning("disk", detail, "Free some space, or move the data root.")
    else:
        yield good("disk", check.detail)


def _backup(settings: Settings, layout: RootLayout) -> Diagnosis:
    try:
        last = read_last_backup(layout.last_backup)
    except OSError as error:
        return warning(
            "backup", f"The last backup is not known: {error.strerror}.", "Check --root."
        )
    remedy = "Run 'podstead backup' regularly, with a timer."
    if last is None and settings.database is not None:
        detail = "There is no backup by 'podstead backup'; PostgreSQL's own tools may make some."
        return skipped("backup", detail)
    if last is None:
        return warning("backup", "There is no backup by 'podstead backup'.", remedy)
    age_days = int((time.time() - last.finished_s) / _DAY_S)
    detail = f"The last backup, {last.place}, is {counted(age_days, 'day')} old."
    return (
        warning("backup", detail, remedy) if age_days > OLD_BACKUP_DAYS else good("backup", detail)
    )


def _certificate_files(settings: Settings) -> Iterator[Diagnosis]:
    if settings.ssl_cert is None or settings.ssl_key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            settings.ssl_cert, settings.ssl_key, password=b""
        )
    except (OSError, ValueError) as error:
        yield serious(
            "certificate-files",
            f"The certificate and its key cannot be used: {error}.",
            "Set ssl-cert and ssl-key to files in PEM format that belong together and that this "
            "user can read.",
        )
    else:
        yield good("certificate-files", "The certificate and its key belong together.")


async def _clock(records: RecordStore) -> Diagnosis:
    check = check_clock(records.now_ms(), await newest_change_ms(records.store))
    if check.ok:
        return good("clock", check.detail)
    return serious("clock", check.detail, "Synchronize the clock of this machine (NTP).")


def _root_in(content: bytes) -> str | None:
    """The mark of the data root whose server has sent its readiness."""
    try:
        return msgspec.json.decode(content, type=_Readiness).root
    except (msgspec.DecodeError, RecursionError):
        return None


class _Readiness(msgspec.Struct):
    root: str | None = None


def _private_address(settings: Settings) -> Iterator[Diagnosis]:
    address = settings.admin_listen
    if address is None:
        yield skipped("readiness", "admin-listen is off.")
        return
    try:
        reply = probe(f"http://{address}/health/ready")
    except NotReached as error:
        yield warning(
            "readiness",
            f"The private address {address} does not answer: {error}.",
            "Start the server. If another program uses the address, set another --admin-listen.",
        )
        return
    if _root_in(reply.content) != root_mark(settings.root):
        yield warning(
            "readiness",
            f"At the private address {address} is another server, not that of {settings.root}.",
            "Start this server, with another --admin-listen.",
        )
    elif reply.status == 200:
        yield good("readiness", "The server is ready.")
    else:
        text = reply.content.decode("utf-8", "replace").strip()
        yield serious("readiness", f"The server is not ready: {text}", "See the other findings.")
