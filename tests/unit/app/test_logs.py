"""Log lines carry all that was logged, as text or as JSON."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from podstead.app.process.logs import JsonFormatter, ServerNews, TextFormatter, logging_config
from podstead.config import Settings
from podstead.core.errors import DiskFull, Overloaded, StoreUnavailable


def record(message: str = "Served %s", *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("podstead.web", logging.INFO, __file__, 1, message, arguments, None)
    made.created = 1_700_000_000.25
    made.__dict__.update(extra)
    return made


def failed(message: str, error: Exception | None = None) -> logging.LogRecord:
    made = record(message)
    raised = error or ValueError("a fault")
    made.exc_info = (type(raised), raised, None)
    return made


def test_a_text_line_has_time_level_logger_message_and_facts() -> None:
    line = TextFormatter().format(record("Served %s", "it", request_id="r1", status=200))
    assert line == (
        "2023-11-14T22:13:20.250Z info podstead.web: Served it (request_id=r1 status=200)"
    )


def test_a_json_line_is_one_object() -> None:
    line = JsonFormatter().format(record("Sérved\n%s", "it", request_id="r1", status=200))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "podstead.web",
        "message": "Sérved\nit",
        "request_id": "r1",
        "status": 200,
    }


def test_a_fact_that_json_does_not_know_is_written_as_text() -> None:
    line = JsonFormatter().format(record("x", peer=b"\xff"))
    assert json.loads(line)["peer"] == "b'\\xff'"


def test_a_traceback_is_kept() -> None:
    assert "ValueError: a fault" in TextFormatter().format(failed("It failed"))
    assert "ValueError: a fault" in json.loads(JsonFormatter().format(failed("x")))["exception"]


@pytest.mark.parametrize(
    ("trouble", "cause"),
    [
        (ConnectionResetError("gone\nfor good"), "ConnectionResetError: gone for good"),
        (TimeoutError(), "TimeoutError"),
        (Overloaded("Too many"), "Too many"),
        (ExceptionGroup("both", [TimeoutError("late"), DiskFull()]), "TimeoutError: late"),
    ],
)
def test_trouble_outside_of_the_program_is_one_line_with_its_cause(
    trouble: Exception, cause: str
) -> None:
    unavailable = StoreUnavailable()
    unavailable.__cause__ = trouble
    for error in (trouble, unavailable):
        line = TextFormatter().format(failed("It failed", error))
        assert line.endswith(f"It failed: {cause}")
        assert "\n" not in line
        entry = json.loads(JsonFormatter().format(failed("It failed", error)))
        assert (entry["cause"], "exception" in entry) == (cause, False)


def test_a_body_that_was_cut_is_not_reported_again() -> None:
    assert not ServerNews().filter(record("Application callable raised\nTraceback …\nBodyCut"))
    assert ServerNews().filter(record("Application callable raised\nTraceback …\nKeyError"))


def test_a_text_line_cannot_be_forged_by_a_line_break() -> None:
    line = TextFormatter().format(record("Served %s", "x\n2023 error podstead: forged", p="a\nb"))
    assert "\n" not in line


@pytest.mark.parametrize(
    ("settings", "ours", "granians"),
    [
        (Settings(), "INFO", "WARNING"),
        (Settings(log_level="debug"), "DEBUG", "INFO"),
        (Settings(log_level="error"), "ERROR", "ERROR"),
        (Settings(quiet=True), "ERROR", "ERROR"),
    ],
)
def test_the_http_servers_own_news_is_less_important(
    settings: Settings, ours: str, granians: str
) -> None:
    loggers: dict[str, Any] = logging_config(settings)["loggers"]
    assert loggers["podstead"]["level"] == ours
    assert loggers["_granian"]["level"] == granians


def test_what_granian_wrongly_says_about_stopping_is_dropped() -> None:
    news = ServerNews()
    assert not news.filter(record("Killing worker-1 after it refused to gracefully stop"))
    assert news.filter(record("Unexpected exit from worker-1"))
