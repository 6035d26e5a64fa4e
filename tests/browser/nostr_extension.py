"""A browser with an extension for Nostr (NIP-07), whose keys nostr-tools makes and signs with."""

from __future__ import annotations

import json
from dataclasses import dataclass

from playwright.sync_api import BrowserContext, Page

from tests.support.node import PAGE_CHECKS, install_packages
from tests.support.nostr import NostrKey

_EXTENSION = """
window.testExtension = (({secret, there}) => {
    const key = Uint8Array.from(secret.match(/../g), each => parseInt(each, 16));
    const state = {asked: [], refuses: false, change: event => event};
    const provider = {
        getPublicKey: async () => NostrTools.getPublicKey(key),
        signEvent: async asked => {
            state.asked.push(asked);
            if (state.refuses) throw new Error("User rejected");
            return state.change(NostrTools.finalizeEvent(asked, key));
        },
    };
    window.signedAnew = event => NostrTools.finalizeEvent(event, key);
    state.come = () => { window.nostr = provider; };
    if (there) state.come();
    return state;
})"""
_addresses = (f"192.0.2.{number}" for number in range(1, 255))


@dataclass(frozen=True)
class Extension:
    """The extension of one browser, which a test can look into."""

    key: NostrKey

    def install(self, context: BrowserContext, *, there: bool = True) -> None:
        """Put it into every page that the browser opens from now on; unless ``there``, pages have
        it only once it :meth:`comes`. The browser is at an address of its own, since the requests
        of an address with keys are limited."""
        context.set_extra_http_headers({"X-Forwarded-For": next(_addresses)})
        install_packages(PAGE_CHECKS)
        library = (PAGE_CHECKS / "node_modules/nostr-tools/lib/nostr.bundle.js").read_text()
        given = {"secret": f"{self.key.secret:064x}", "there": there}
        context.add_init_script(
            f"{library}\nwindow.NostrTools = NostrTools;\n{_EXTENSION}({json.dumps(given)});"
        )

    def comes(self, page: Page) -> None:
        """Late, as extensions may."""
        page.evaluate("testExtension.come()")

    def refuse(self, page: Page, refuses: bool = True) -> None:
        """Whether the person declines to sign."""
        page.evaluate("refuses => { testExtension.refuses = refuses; }", refuses)

    def change(self, page: Page, change: str) -> None:
        """Answer something else than what was signed: a function of JavaScript."""
        page.evaluate(f"() => {{ testExtension.change = {change}; }}")

    def asked(self, page: Page) -> list[dict[str, object]]:
        """What it was asked to sign in this page."""
        asked: list[dict[str, object]] = page.evaluate("testExtension.asked")
        return asked

    def npub(self, page: Page) -> str:
        """The key as nostr-tools shows it."""
        text: str = page.evaluate("key => NostrTools.nip19.npubEncode(key)", self.key.public)
        return text
