"""A script that looks for versions of a document with memento_client, for the test that started it.

    memento_reader.py DOCUMENT TOKEN TIMES

TIMES is JSON: a list of HTTP dates. It prints as JSON what the client has found for each of them:
the timegate, the time of the version, and its content.
"""

from __future__ import annotations

import json
import sys

import requests  # type: ignore[import-untyped,unused-ignore]
from memento_client import MementoClient  # type: ignore[import-not-found]

document, token, times = sys.argv[1:]
found = []
with requests.Session() as session:
    session.trust_env = False
    session.headers["Authorization"] = f"Bearer {token}"
    with MementoClient(timegate_uri="http://timegate.invalid/", session=session) as client:
        for time in json.loads(times):
            info = client.get_memento_info(document, client.convert_to_datetime(time))
            closest = info["mementos"]["closest"]
            [address] = closest["uri"]
            found.append(
                {
                    "original": info["original_uri"],
                    "timegate": info["timegate_uri"],
                    "time": client.convert_to_http_datetime(closest["datetime"]),
                    "is memento": client.is_memento(address, session.head(address, timeout=60)),
                    "original of version": client.get_original_uri(address),
                    "content": session.get(address, timeout=60).text,
                }
            )
print(json.dumps(found))  # noqa: T201
