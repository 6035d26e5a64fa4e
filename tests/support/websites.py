"""What an application has on the web: a site that serves it, and its client ID document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.support.http_servers import Handler, serving

CONTEXT = "https://www.w3.org/ns/solid/oidc-context.jsonld"


@dataclass(frozen=True, slots=True)
class Document:
    """One answer of the site, whatever the query."""

    body: bytes
    content_type: str


@dataclass
class Website:
    """A site on this machine, another one than localhost; what is there can change at any time."""

    origin: str
    documents: dict[str, Document] = field(default_factory=dict)

    def publish(self, path: str, body: str | bytes, content_type: str) -> str:
        """Put a document at a path; its URL."""
        content = body.encode() if isinstance(body, str) else body
        self.documents[path] = Document(content, content_type)
        return self.origin + path

    def publish_client(self, path: str, *redirect_uris: str, **members: object) -> str:
        """A client ID document; its URL is the client's identifier."""
        document = client_document(self.origin + path, *redirect_uris, **members)
        return self.publish(path, document, "application/ld+json")


def client_document(client_id: str, *redirect_uris: str, **members: object) -> str:
    """A client ID document as the Solid-OIDC specification shows it (section 5.1)."""
    return json.dumps(
        {
            "@context": [CONTEXT],
            "client_id": client_id,
            "client_name": "Field Notes",
            "redirect_uris": redirect_uris,
            "scope": "openid webid offline_access",
            "grant_types": ["refresh_token", "authorization_code"],
            "response_types": ["code"],
        }
        | members
    )


@contextmanager
def running_website() -> Iterator[Website]:
    """An empty site that is gone in the end."""
    website = Website("")

    class Answering(Handler):
        def respond(self) -> None:
            document = website.documents.get(urlsplit(self.path).path)
            if document is None:
                self.answer(404)
            else:
                self.answer(200, document.body, {"Content-Type": document.content_type})

    with serving(Answering) as port:
        website.origin = f"http://127.0.0.1:{port}"
        yield website
