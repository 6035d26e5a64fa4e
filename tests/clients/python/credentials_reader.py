"""A script that reads documents by SolidClientCredentials, for the test that started it.

    credentials_reader.py ISSUER ID SECRET DOCUMENT...

It prints as JSON the status and the text of each document.
"""

from __future__ import annotations

import json
import sys

import requests
from solid_client_credentials import DpopTokenProvider, SolidClientCredentialsAuth  # type: ignore[import-not-found]

issuer, client_id, secret, *documents = sys.argv[1:]
provider = DpopTokenProvider(issuer_url=issuer, client_id=client_id, client_secret=secret)
with requests.Session() as session:
    session.auth = SolidClientCredentialsAuth(provider)
    answers = [session.get(document, timeout=60) for document in documents]
print(json.dumps([[answer.status_code, answer.text] for answer in answers]))  # noqa: T201
