"""Pages and messages have a text for every event that records can contain."""

import importlib
import pkgutil

import pytest

import podstead.features
from podstead.idp.audit import EventKind, EventSource
from podstead.web.account.event_texts import event_text, source_text
from podstead.web.pages.texts import texts_in, use_texts

for module in pkgutil.walk_packages(podstead.features.__path__, "podstead.features."):
    importlib.import_module(module.name)  # each with its events and their texts
EVENTS = [event for kind in EventKind.__subclasses__() for event in kind]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_every_event_has_a_text_in_each_language(event: EventKind) -> None:
    use_texts(texts_in("en"))
    english = event_text(event.value)
    assert english[0].isupper()
    use_texts(texts_in("de"))
    assert event_text(event.value) != english


@pytest.mark.parametrize("cause", EventSource)
def test_every_cause_has_a_text(cause: EventSource) -> None:
    use_texts(texts_in("nl"))
    assert source_text(cause.value) != cause.value


def test_what_nobody_knows_any_more_is_shown_as_it_was_stored() -> None:
    assert event_text("of a feature that is gone") == "of a feature that is gone"
    assert source_text("something") == "something"
