"""Writes log messages: one line each on standard error, as text or JSON.

Callers pass further facts in ``extra``, and both formats include them. Credentials, cookies and
query strings of sign-ins never belong there (A-183).
"""

import json
import logging
import logging.config
import re
from datetime import UTC, datetime
from typing import Any

from podstead.config import Settings
from podstead.core.errors import cause_text, is_passing_trouble
from podstead.core.messages import printable
from podstead.core.request_context import current_request_id
from podstead.web.sending import BodyTruncated

SERVER_LOGGER = "_granian"
"""The logger of the HTTP server, whose own messages matter only for debugging."""

_STANDARD_ATTRIBUTES = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}

_AMBIGUOUS = re.compile(r"[\s\"]")


def logging_config(settings: Settings) -> dict[str, Any]:
    """The configuration for :func:`logging.config.dictConfig`, in this process and every worker."""
    level = "error" if settings.quiet else settings.log_level
    formatter = "JsonFormatter" if settings.log_format == "json" else "TextFormatter"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": f"{__name__}.{formatter}"}},
        "filters": {
            "news": {"()": f"{__name__}.GranianLogFilter"},
            "ids": {"()": f"{__name__}.RequestIdFilter"},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "lines",
                # Those of a logger are not asked about what its children log.
                "filters": ["news", "ids"],
            }
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "podstead": {"level": level.upper()},
            SERVER_LOGGER: {"level": server_level(settings).upper()},
        },
    }


def server_level(settings: Settings) -> str:
    """The level of the HTTP server's own messages, one less important than ours."""
    if settings.quiet:
        return "error"
    return {"debug": "info", "info": "warning"}.get(settings.log_level, settings.log_level)


def configure_logging(settings: Settings) -> None:
    """Set up logging in this process."""
    logging.config.dictConfig(logging_config(settings))


class GranianLogFilter(logging.Filter):
    """Drops granian's messages about workers that did not stop in time, and about bodies that were
    cut. It logs the former for any worker whose end another of its threads notices first;
    ``serve.py`` logs one if it is true. The application has logged why a body was cut."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the message."""
        message = record.getMessage()
        return "refused to gracefully stop" not in message and BodyTruncated.__name__ not in message


class RequestIdFilter(logging.Filter):
    """Adds the id of the request that a message is about."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always true."""
        mark = current_request_id()
        if mark is not None and not hasattr(record, "request_id"):
            record.request_id = mark.request_id
        return True


class TextFormatter(logging.Formatter):
    """``2026-11-21T05:30:00.123Z warning podstead.app: The message (key=value)``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, followed by the traceback unless the error is passing trouble."""
        cause = _cause(record)
        facts = " ".join(f"{key}={_quoted(value)}" for key, value in _extra(record).items())
        line = _one_line(
            f"{_timestamp(record)} {record.levelname.lower()} {record.name}: "
            f"{record.getMessage()}{f': {cause}' if cause else ''}{f' ({facts})' if facts else ''}"
        )
        traceback = _traceback(self, record)
        return line if traceback is None else f"{line}\n{traceback}"


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ``time``, ``level``, ``logger``, ``message`` and further facts."""

    def format(self, record: logging.LogRecord) -> str:
        """The object; ``exception`` contains the traceback, if any, and ``cause`` what stands for
        one."""
        entry = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        cause = _cause(record)
        if cause:
            entry["cause"] = cause
        traceback = _traceback(self, record)
        if traceback is not None:
            entry["exception"] = traceback
        return json.dumps(entry, ensure_ascii=False, default=str)


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str | None:
    if record.exc_info is None or record.exc_info[0] is None or _cause(record):
        return None
    return formatter.formatException(record.exc_info)


def _cause(record: logging.LogRecord) -> str:
    """What a message about passing trouble says instead of a traceback."""
    error = record.exc_info[1] if record.exc_info else None
    return cause_text(error) if error is not None and is_passing_trouble(error) else ""


def _quoted(value: object) -> str:
    """The text of a value, in quotes if it could be taken for several."""
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if _AMBIGUOUS.search(text) else text


def _one_line(text: str) -> str:
    """The text with control characters escaped, so that no input can forge a line."""
    return printable(text)


def _extra(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD_ATTRIBUTES}


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
