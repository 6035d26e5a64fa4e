"""Previews of stored content: pure functions from bytes and graphs to values and safe HTML.

Nothing here reads storage, decides about access or knows HTTP. Content is hostile: every text
leaves as a plain string, which the templates escape, or as HTML that was built from an allowlist.

The libraries that render Markdown, source code and pictures are imported by ``markdown.py``,
``source.py`` and ``pictures.py`` only, which run in a process of their own (``rendering.py``):
content that makes one of them crash or run forever affects only that process.
"""
