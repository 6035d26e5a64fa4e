"""The index on PostgreSQL: tables of the feature, with an index of the terms as a ``tsvector``.

The terms are stored as they are, and PostgreSQL makes lexemes of them without any analysis of its
own. Rows are written as those of all features are, and together with those of other writes, so none
of them may fail: :func:`storable` sees to that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from podstead.core.identifiers import ResourcePath, is_container
from podstead.features.search import analysis, index, tables
from podstead.storage import protocol, record_store, schema
from podstead.storage.records import DropRow, PutRow, Record
from podstead.storage.tables import end_of
from podstead.wac.modes import any_member

BATCH: Final = 500
"""How many rows one write changes."""
_LEASE_MS: Final = 15_000
_ASKED_MS: Final = 2_000
"""How often a worker without the lease asks for it."""
_IN_NAME: Final = "array_to_tsvector(string_to_array(c.names, ' '))"


class PostgresqlIndex:
    """Implements Index."""

    def __init__(self, records: record_store.RecordStore) -> None:
        self._records = records
        self._store: protocol.FeatureRows = records.store
        self._lease = record_store.Lease("search", records, lasts_ms=_LEASE_MS)
        self._asked_ms = 0

    async def hold(self) -> bool:
        """A lease, which others take when it has not been renewed for some seconds."""
        now_ms = self._records.now_ms()
        if not self._lease.lasts_for(0) and now_ms < self._asked_ms + _ASKED_MS:
            return False
        self._asked_ms = now_ms
        return await self._lease.hold()

    async def position(self) -> index.Position | None:
        rows = await self._store.fetch(tables.POSITION.select("WHERE one = 1"))
        return None if not rows else index.Position(*rows[0][1:])

    async def begin(self, position: index.Position) -> None:
        await self._records.commit([DropRow(tables.POSITION, (1,))])
        for table in (tables.DOCUMENTS, tables.CONTENTS, tables.RULES, tables.LANGUAGES):
            key = table.key[0]
            select = f"SELECT {key} FROM {table.name} LIMIT %s"  # noqa: S608 - our tables
            while rows := await self._store.fetch(select, BATCH):
                await self._records.commit([DropRow(table, row) for row in rows])
        await self._records.commit([_put_position(position)])

    async def forget(self) -> None:
        await self._records.commit([DropRow(tables.POSITION, (1,))])

    async def size(self) -> int:
        rows = await self._store.fetch(f"SELECT count(*) FROM {tables.DOCUMENTS.name}")  # noqa: S608
        number: int = rows[0][0]
        return number

    async def apply(self, step: index.IndexStep) -> None:
        for subject, (of_members, own) in step.ruled.items():
            await self._follow_rules(subject, of_members, own)
        records: list[Record] = []
        for path in step.drops:
            records += (DropRow(tables.DOCUMENTS, (path,)), DropRow(tables.CONTENTS, (path,)))
        for document in step.puts.values():
            records += _rows_of(document)
        rules = {each.rule for each in step.puts.values()}
        records += (PutRow(tables.RULES, (rule,)) for rule in rules)
        records += (PutRow(tables.LANGUAGES, (each,)) for each in step.languages)
        await self._records.commit([*records, _put_position(step.position)])

    async def _follow_rules(
        self, subject: ResourcePath, of_members: ResourcePath, own: ResourcePath
    ) -> None:
        await self._records.commit([PutRow(tables.RULES, (rule,)) for rule in {of_members, own}])
        await self._change_rule("path = %s AND rule <> %s", (subject, own), own)
        if not is_container(subject):
            return
        members = any_member(subject)
        if of_members != members:  # the ACL is gone
            await self._change_rule("rule = %s", (members,), of_members)
            await self._records.commit([DropRow(tables.RULES, (members,))])
            return
        above = index.rules_above(subject)
        where = f"path > %s AND path < %s AND rule IN ({index.marks(above)})"
        await self._change_rule(where, (subject, end_of(subject), *above), of_members)

    async def _change_rule(self, where: str, values: Sequence[object], rule: ResourcePath) -> None:
        select = tables.DOCUMENTS.select(f"WHERE {where} LIMIT %s")
        while rows := await self._store.fetch(select, *values, BATCH):
            changed = ((path, rule, *rest) for path, _, *rest in rows)
            await self._records.commit([PutRow(tables.DOCUMENTS, each) for each in changed])

    async def rules(self, below: ResourcePath, *, limit: int) -> Sequence[ResourcePath]:
        inherited = [*index.rules_above(below), below]
        select = tables.RULES.select(
            f"WHERE rule > %s AND rule < %s OR rule IN ({index.marks(inherited)}) LIMIT %s"
        )
        rows = await self._store.fetch(select, below, end_of(below), *inherited, limit)
        return [ResourcePath(rule) for (rule,) in rows]

    async def candidates(self, selection: index.IndexQuery) -> Sequence[index.Candidate]:
        question = selection.question
        where, values = index.conditions(selection)
        in_name, named = "FALSE", list[str | int]()
        query = " & ".join(
            [
                *map(_lexemes, question.wanted),
                *(f"!{_lexemes(each)}" for each in question.excluded if len(each.words) == 1),
            ]
        )
        if query:
            where.append(f"{tables.VECTOR} @@ %s::tsquery")
            values.append(query)
        for clause in question.wanted:
            _phrase(clause, where, values, "")
        for clause in question.excluded:
            _phrase(clause, where, values, "NOT ")
        if question.wanted:
            in_name = f"{_IN_NAME} @@ %s::tsquery"
            named.append(" & ".join(map(_lexemes, question.wanted)))
        order = "d.modified_ms DESC, d.path"
        if not selection.newest:
            order = f"in_name DESC, {order}"
        select = (
            f"SELECT {index.COLUMNS}, {in_name} AS in_name FROM {tables.DOCUMENTS.name} AS d"  # noqa: S608
            f" JOIN {tables.CONTENTS.name} AS c ON c.path = d.path"
            f" WHERE {' AND '.join(where)} ORDER BY {order} LIMIT %s OFFSET %s"
        )
        bound = (*named, *values, selection.limit, selection.offset)
        return [index.candidate_of(row) for row in await self._store.fetch(select, *bound)]

    async def languages(self) -> Sequence[str]:
        return [language for (language,) in await self._store.fetch(tables.LANGUAGES.select())]

    async def terms(
        self, paths: Iterable[ResourcePath], *, max_characters: int
    ) -> Mapping[ResourcePath, str]:
        rows = await self._contents(f"substr(terms, 1, {max_characters:d})", list(paths))
        return dict(rows)

    async def texts(self, paths: Iterable[ResourcePath]) -> Mapping[ResourcePath, index.StoredText]:
        rows = await self._contents("text, language", list(paths))
        return {path: index.StoredText(*rest) for path, *rest in rows}

    async def _contents(self, columns: str, paths: Sequence[ResourcePath]) -> Sequence[schema.Row]:
        if not paths:
            return []
        select = (
            f"SELECT path, {columns} FROM {tables.CONTENTS.name}"  # noqa: S608 - our names
            f" WHERE path IN ({index.marks(paths)})"
        )
        return await self._store.fetch(select, *paths)

    async def close(self) -> None:
        if self._lease.lasts_for(0):
            await self._lease.release()


def _put_position(position: index.Position) -> Record:
    return PutRow(tables.POSITION, (1, position.sequence, position.version, position.cursor))


def _rows_of(document: index.IndexedDocument) -> Iterator[Record]:
    path = document.path
    yield PutRow(
        tables.DOCUMENTS,
        (
            path,
            document.rule,
            document.version,
            document.media_type,
            document.size_bytes,
            document.modified_ms,
            document.author,
        ),
    )
    values = (path, document.names, document.terms, document.text, document.language)
    yield PutRow(tables.CONTENTS, values)


def _lexemes(clause: analysis.Clause) -> str:
    """What a text must contain, for PostgreSQL; the order of several words comes in addition.
    Terms have no quotes in them."""
    words = [f"'{word}'" for word in clause.words]
    if clause.is_prefix:
        words[-1] += ":*"
    alternatives = [f"({' & '.join(words)})", *(f"'{stem}'" for stem in sorted(clause.stems))]
    return f"({' | '.join(alternatives)})"


def _phrase(
    clause: analysis.Clause, where: list[str], values: list[str | int], negation: str
) -> None:
    """Require that several words are one behind the other, in the name or in the text."""
    if len(clause.words) > 1:
        place = "strpos(' ' || c.{} || ' ', %s) > 0"
        where.append(f"{negation}({place.format('names')} OR {place.format('terms')})")
        phrase = f" {' '.join(clause.words)}{'' if clause.is_prefix else ' '}"
        values += [phrase, phrase]
