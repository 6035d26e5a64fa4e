"""What is a browser called, by what it says of itself? In everyday words."""

from __future__ import annotations

from typing import Final

# The order matters: each of these browsers also claims to be those below it.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("HeadlessChrome/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "Mac"),
    ("Linux", "Linux"),
)


def browser_name(user_agent: str) -> str:
    """The name of the browser that sent this User-Agent, such as "Firefox on Windows"."""
    browser = _first(user_agent, _BROWSERS)
    system = _first(user_agent, _SYSTEMS)
    if browser is None:
        return "A program" if system is None else f"A browser on {system}"
    return browser if system is None else f"{browser} on {system}"


def _first(user_agent: str, names: tuple[tuple[str, str], ...]) -> str | None:
    return next((name for sign, name in names if sign in user_agent), None)
