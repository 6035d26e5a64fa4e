"""The rows of a container page, as HTML.

They are written here rather than by a template because there are hundreds of them on a page: what
is the same in many rows is written once, and only what comes from the pod is escaped in each.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final

from markupsafe import Markup

from podstead.core.identifiers import ResourcePath, segment_name
from podstead.core.media_types import essence
from podstead.previews.kinds import Kind, kind_of
from podstead.resources.entity_tags import last_modified_ms
from podstead.wac.decision import Audience
from podstead.web.pages.addresses import files_url
from podstead.web.pages.formats import date_text, iso_time, moment_text, size_text
from podstead.web.pages.texts import _
from podstead.web.pod_pages.files.members import Member
from podstead.web.pod_pages.files.thumbnails import has_thumbnail, thumbnail_url
from podstead.web.pod_pages.files.words import kind_name, reach_name

ICONS: Final = tuple(each.value for kinds in (Kind, Audience) for each in kinds)
"""The icons that rows refer to, as the symbols ``i-<name>``: the page has each of them once."""


class RowWriter:
    """Writes the rows of one list in the language of the current request."""

    def __init__(
        self,
        *,
        grid: bool,
        owns: bool,
        reaches: Mapping[ResourcePath, Audience | None],
        authors: Mapping[ResourcePath, str],
        everyone_lists: bool,
    ) -> None:
        """``reaches`` says how far the right to read each member reaches, ``authors`` who is shown
        as having changed it; ``owns`` if the container is the person's own, ``everyone_lists`` if
        the public may see what is in it."""
        self._grid = grid
        self._reaches = reaches
        self._authors = authors
        self._select = escape(_("Select %(name)s"))
        self._pictures = {
            kind: f'<span class="picture kind-{kind.value}">{_icon(kind.value)}</span>'
            for kind in Kind
        }
        self._types = {kind: escape(kind_name(kind)) for kind in Kind}
        self._reach_cells: dict[Audience | None, str] = {None: ""}
        self._reach_cells.update(
            {each: _reach_cell(each, owns=owns, everyone_lists=everyone_lists) for each in Audience}
        )

    def row(self, member: Member) -> Markup:
        """One row, or one tile of the grid."""
        metadata = member.metadata
        name = escape(member.name)
        kind = (
            Kind.FOLDER
            if member.is_container
            else kind_of(essence(metadata.content_type), member.name)
        )
        picture = self._pictures[kind]
        if kind is Kind.IMAGE and has_thumbnail(metadata):
            picture = (
                f'<span class="picture kind-image"><img src="{escape(thumbnail_url(metadata))}" '
                'alt="" loading="lazy" decoding="async"></span>'
            )
        box = (
            f'<input type="checkbox" name="name" value="{escape(segment_name(member.path))}" '
            f'form="selection" aria-label="{self._select % {"name": name}}">'
        )
        address = escape(files_url(member.path))
        if self._grid:
            written = (
                f'<li class="tile" data-name="{name}">{box}'
                f'<a href="{address}">{picture}<span class="title">{name}</span></a></li>\n'
            )
        else:
            written = (
                f'<tr data-name="{name}"><td class="pick">{box}</td>'
                f'<td class="name"><a href="{address}">{picture}'
                f'<span><span class="title">{name}</span>{self._rest(member, kind)}</tr>\n'
            )
        return Markup(written)  # noqa: S704 - all that comes from the pod is escaped above

    def _rest(self, member: Member, kind: Kind) -> str:
        """The row from the end of the name on."""
        size = "" if member.is_container else escape(size_text(member.metadata.size_bytes))
        changed_ms = last_modified_ms(member.metadata)
        author = self._authors.get(member.path)
        by = f' <span class="quiet author">{escape(author)}</span>' if author else ""
        return (
            f'<span class="narrow-only quiet">{size}{" · " if size else ""}'
            f"{escape(date_text(changed_ms))}</span></span></a></td>"
            f'<td class="reach">{self._reach_cells[self._reaches[member.path]]}</td>'
            f'<td class="wide-only quiet">{self._types[kind]}</td>'
            f'<td class="wide-only changed"><time datetime="{iso_time(changed_ms)}">'
            f"{escape(moment_text(changed_ms))}</time>{by}</td>"
            f'<td class="number">{size}</td>'
        )


def _icon(name: str) -> str:
    return f'<svg class="icon" aria-hidden="true"><use href="#i-{name}"/></svg>'


def _reach_cell(reach: Audience, *, owns: bool, everyone_lists: bool) -> str:
    text = escape(reach_name(reach, owns=owns))
    if not everyone_lists or reach is Audience.EVERYONE:
        return f'<span title="{text}">{_icon(reach.value)}<span class="label">{text}</span></span>'
    listed = escape(_("Everyone can see that it exists"))
    return (
        f'<span title="{text}. {listed}.">{_icon(reach.value)}'
        f'<span class="label">{text}<br>{listed}</span></span>'
    )
