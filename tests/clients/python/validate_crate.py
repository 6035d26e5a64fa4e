"""A script that validates an RO-Crate by the shapes of roc-validator, for the test that started it.

    validate_crate.py CRATE

It prints as JSON a list of ``[severity, check, message, entity]`` for everything that the crate
does not do as RO-Crate 1.2 requires or recommends. No server is asked: the JSON-LD context is that
of the package rocrate, which is a later version of it.
"""

from __future__ import annotations

import json
import sys
from importlib.resources import files

import requests
from rocrate_validator import models, services  # type: ignore[import-not-found]
from rocrate_validator.utils import http  # type: ignore[import-not-found]

CONTEXT_URL = "https://w3id.org/ro/crate/1.2/context"
CONTEXT = files("rocrate").joinpath("data/ro-crate.jsonld").read_bytes()


def get(_: object, url: str, **_options: object) -> requests.Response:
    """The context, and nothing else."""
    response = requests.Response()
    response.status_code = 200 if url == CONTEXT_URL else 404
    response.headers["Content-Type"] = "application/ld+json"
    response._content = CONTEXT if url == CONTEXT_URL else b"{}"
    return response


http.HttpRequester.get = http.HttpRequester.head = get

result = services.validate(
    services.ValidationSettings(
        rocrate_uri=sys.argv[1],
        profile_identifier="ro-crate-1.2",
        requirement_severity=models.Severity.RECOMMENDED,
    )
)
found = [
    [each.severity.name, each.check.name, each.message, str(each.violatingEntity)]
    for each in result.get_issues()
]
print(json.dumps(found))  # noqa: T201
