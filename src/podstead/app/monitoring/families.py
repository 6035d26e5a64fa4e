"""The table of metrics: names, kinds, meanings and labels.

Label values come from fixed lists: routes, methods, statuses and words of this program. No name of
a pod, WebID, address or path of a request is ever a label value.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

from podstead.storage.protocol import BATCH_BOUNDS, COMMIT_BOUNDS_S
from podstead.web.request_counts import DURATION_BOUNDS_S


class MetricKind(Enum):
    """How values of several workers and moments belong together."""

    COUNTER = "counter"
    """Only grows; those of all workers are added, also of workers that have ended."""
    GAUGE = "gauge"
    """Goes up and down; those of all running workers are added."""
    HISTOGRAM = "histogram"
    """Counters by size."""


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric, with a time series for each combination of label values."""

    name: str
    kind: MetricKind
    meaning: str
    labels: Sequence[str] = ()
    bounds: Sequence[float] = ()
    """The upper bounds of the buckets of a histogram."""


def _counter(name: str, meaning: str, *labels: str) -> MetricFamily:
    return MetricFamily(f"podstead_{name}", MetricKind.COUNTER, meaning, labels)


def _gauge(name: str, meaning: str, *labels: str) -> MetricFamily:
    return MetricFamily(f"podstead_{name}", MetricKind.GAUGE, meaning, labels)


def _histogram(name: str, meaning: str, *labels: str, bounds: Sequence[float]) -> MetricFamily:
    return MetricFamily(f"podstead_{name}", MetricKind.HISTOGRAM, meaning, labels, bounds)


REQUESTS: Final = _counter(
    "http_requests_total", "Responses to requests.", "route", "method", "status"
)
DURATIONS: Final = _histogram(
    "http_request_duration_seconds",
    "Time until a response began. Responses from the response cache take less than the first "
    "bucket allows and add nothing to the sum.",
    "route",
    "method",
    bounds=DURATION_BOUNDS_S,
)
CACHE_LOOKUPS: Final = _counter(
    "response_cache_lookups_total", "GET and HEAD requests that may be cached.", "result"
)
CACHE_BYTES: Final = _gauge("response_cache_bytes", "Approximate memory of cached responses.")
BATCHES: Final = _histogram(
    "commit_batch_size", "Writes that shared one transaction.", bounds=BATCH_BOUNDS
)
COMMITS: Final = _histogram(
    "commit_duration_seconds",
    "Time for which a transaction waited for the disk.",
    bounds=COMMIT_BOUNDS_S,
)
WAITING_WRITES: Final = _gauge("waiting_writes", "Writes that wait for their transaction.")
OUTBOUND: Final = _counter(
    "outbound_requests_total", "Requests to other servers.", "purpose", "outcome"
)
OPEN_CIRCUITS: Final = _gauge(
    "open_circuits", "Origins that are not contacted because they failed too often."
)
SOCKETS: Final = _gauge("open_sockets", "WebSockets and event streams that are open.")
WATCHES: Final = _gauge("watches", "Subscriptions to topics over open sockets and webhooks.")
DELIVERED: Final = _counter(
    "notifications_delivered_total", "Notifications passed on to subscribers."
)
SIGN_INS: Final = _counter(
    "sign_ins_total", "Sign-ins at the identity provider of this server.", "outcome"
)
AUDIT_EVENTS: Final = _counter("audit_events_total", "Events of the audit log.", "event")
MAIL: Final = _counter("mail_messages_total", "Attempts to send a message to a person.", "outcome")
CPU: Final = _counter("worker_cpu_seconds_total", "Processor time of workers.")
MEMORY: Final = _gauge(
    "worker_resident_memory_bytes", "Resident memory of workers; shared pages count for each."
)

WORKER_FAMILIES: Final = (
    REQUESTS,
    DURATIONS,
    CACHE_LOOKUPS,
    CACHE_BYTES,
    BATCHES,
    COMMITS,
    WAITING_WRITES,
    OUTBOUND,
    OPEN_CIRCUITS,
    SOCKETS,
    WATCHES,
    DELIVERED,
    SIGN_INS,
    AUDIT_EVENTS,
    MAIL,
    CPU,
    MEMORY,
)
"""What each worker reads from its own parts."""

PODS: Final = _gauge("pods", "Pods.")
ACCOUNTS: Final = _gauge("accounts", "Accounts.")
CHANNELS: Final = _gauge("notification_channels", "Notification channels.")
WAITING_MAIL: Final = _gauge("waiting_mail_messages", "Messages to people that wait to be sent.")
USED_BYTES: Final = _gauge("pods_used_bytes", "Bytes that all pods are charged for.")
QUOTA_BYTES: Final = _gauge("pods_quota_bytes", "Sum of the quotas of pods that have one.")
NEARLY_FULL: Final = _gauge(
    "pods_nearly_full", "Pods that use at least nine tenths of their quota."
)
DATABASE_BYTES: Final = _gauge("database_bytes", "Size of the database with its log.")
DISK_TOTAL: Final = _gauge("disk_total_bytes", "Size of the file system of the data root.")
DISK_FREE: Final = _gauge("disk_free_bytes", "Free space of this file system.")
FEATURE_FINDINGS: Final = _gauge(
    "feature_findings",
    "Findings of the features about their health; they are asked every five minutes.",
    "severity",
)
DISK_FLOOR: Final = _gauge(
    "disk_floor_bytes", "Free space below which the server stores nothing new."
)

LAST_BACKUP: Final = _gauge(
    "last_backup_timestamp_seconds", "When the last backup was finished, in Unix time."
)
LAST_BACKUP_DURATION: Final = _gauge("last_backup_duration_seconds", "How long it took.")
FAILED_BACKUP: Final = _gauge(
    "last_failed_backup_timestamp_seconds", "When a backup last failed, in Unix time."
)

STORED_FAMILIES: Final = (
    PODS,
    ACCOUNTS,
    CHANNELS,
    WAITING_MAIL,
    USED_BYTES,
    QUOTA_BYTES,
    NEARLY_FULL,
    DATABASE_BYTES,
    DISK_TOTAL,
    DISK_FREE,
    DISK_FLOOR,
    FEATURE_FINDINGS,
    LAST_BACKUP,
    LAST_BACKUP_DURATION,
    FAILED_BACKUP,
)
"""What one worker reads from the data root."""

BUILD: Final = _gauge("build_info", "Always 1.", "version", "python")
STARTED: Final = _gauge("start_time_seconds", "When the main process started, in Unix time.")
WORKERS: Final = _gauge("workers", "Worker processes.", "state")
RESTARTS: Final = _counter("worker_restarts_total", "Workers that replaced one that had failed.")

MAIN_FAMILIES: Final = (BUILD, STARTED, WORKERS, RESTARTS)
"""What the main process knows."""

FAMILIES: Final = (*MAIN_FAMILIES, *WORKER_FAMILIES, *STORED_FAMILIES)


class MailOutcome(Enum):
    """What came of an attempt to send a message."""

    SENT = "sent"
    DELAYED = "delayed"
    """It is tried again later."""
    GIVEN_UP = "given_up"


class MailCounts:
    """Counts the attempts of this process."""

    counts: ClassVar[Counter[MailOutcome]] = Counter()

    @classmethod
    def note(cls, outcome: MailOutcome) -> None:
        """Count an attempt."""
        cls.counts[outcome] += 1
