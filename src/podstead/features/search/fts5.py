"""The index of the embedded engine: a database of its own, in which SQLite's FTS5 finds terms.

Nothing here is waited for by a commit of the server, and a commit here is not synced to disk. The
file follows the database of the server and never leads it: after a power failure it is some changes
behind and catches up. A damaged one is removed, and built anew.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import apsw

from podstead.core.errors import DiskFull, StorageError
from podstead.core.identifiers import ResourcePath, is_container
from podstead.features.search import analysis, index
from podstead.storage.disk_space import DiskSpace, is_full
from podstead.storage.files import try_lock
from podstead.storage.schema import Row
from podstead.storage.sqlite.connection import BusyHandler
from podstead.storage.tables import end_of
from podstead.wac.modes import any_member

T = TypeVar("T")

INDEX_NAME: Final = "search.db"
"""The name of the file in the data root."""
FORMAT: Final = 1
"""Changes whenever the tables or the analysis of texts do, which has the index built anew."""
_WAIT_S: Final = 2.0
_SCHEMA: Final = """
    CREATE TABLE position (
        one INTEGER PRIMARY KEY, sequence BIGINT, version TEXT, cursor TEXT
    );
    CREATE TABLE rules (rule TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE documents (
        number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, rule TEXT NOT NULL,
        version TEXT NOT NULL, media_type TEXT NOT NULL, size_bytes BIGINT NOT NULL,
        modified_ms BIGINT NOT NULL, author TEXT
    );
    CREATE INDEX documents_by_rule ON documents (rule);
    CREATE TABLE contents (
        number INTEGER PRIMARY KEY, terms TEXT NOT NULL, text TEXT NOT NULL, language TEXT
    );
    CREATE TABLE languages (language TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE VIRTUAL TABLE words USING fts5 (
        names, terms, content = '', contentless_delete = 1, tokenize = 'ascii',
        prefix = '1 2 3'
    );
"""
_SETTINGS: Final = """
    PRAGMA synchronous = NORMAL;
    PRAGMA secure_delete = ON;
    PRAGMA cache_size = -16384;
    PRAGMA journal_size_limit = 67108864;
"""
_TABLES: Final = ("documents", "contents", "words", "rules", "languages", "position")


class IndexMissing(StorageError):
    """Nothing has created the index yet, or it was removed."""


class Fts5Index:
    """Implements Index."""

    def __init__(self, database: Path, space: DiskSpace) -> None:
        """Nothing is opened before it is used."""
        self._database = database
        self._space = space
        self._reader = _Connection(database)
        self._writer = _Connection(database, creates=True)
        self._lock: IO[bytes] | None = None

    async def hold(self) -> bool:
        """The lock of a file, which ends with its process."""
        if self._lock is None:
            try:
                file = self._database.with_name(f"{self._database.name}-lock").open("ab")
            except OSError as error:
                raise _error(error) from error
            if not try_lock(file.fileno()):
                file.close()
                return False
            self._lock = file
        return True

    async def position(self) -> index.Position | None:
        try:
            return await self._reader.run(_position)
        except IndexMissing:
            return None

    async def begin(self, position: index.Position) -> None:
        def clear(connection: apsw.Connection) -> None:
            for table in _TABLES:
                delete = "INSERT INTO words (words) VALUES ('delete-all')"
                connection.execute(delete if table == "words" else f"DELETE FROM {table}")  # noqa: S608
            values = (position.sequence, position.version, position.cursor)
            connection.execute("INSERT INTO position VALUES (1, ?, ?, ?)", values)

        await self._change(clear)

    async def forget(self) -> None:
        def drop(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM position")

        await self._writer.run(drop, writes=True)

    async def size(self) -> int:
        try:
            rows = await self._reader.run(
                lambda connection: _fetch(connection, "SELECT count(*) FROM documents")
            )
        except IndexMissing:
            return 0
        number: int = rows[0][0]
        return number

    async def apply(self, step: index.IndexStep) -> None:
        await self._change(lambda connection: _apply(connection, step))

    async def _change(self, work: Callable[[apsw.Connection], None]) -> None:
        """The rest of a disk that is nearly full is for deletions in the database of the server."""
        self._space.check()
        await self._writer.run(work, writes=True)

    async def rules(self, below: ResourcePath, *, limit: int) -> Sequence[ResourcePath]:
        inherited = [*index.rules_above(below), below]
        select = (
            "SELECT rule FROM rules WHERE rule > %s AND rule < %s"  # noqa: S608 - marks
            f" OR rule IN ({index.marks(inherited)}) LIMIT %s"
        )
        values = (below, end_of(below), *inherited, limit)
        rows = await self._reader.run(lambda connection: _fetch(connection, select, values))
        return [ResourcePath(rule) for (rule,) in rows]

    async def candidates(self, selection: index.IndexQuery) -> Sequence[index.Candidate]:
        return await self._reader.run(lambda connection: _candidates(connection, selection))

    async def languages(self) -> Sequence[str]:
        rows = await self._reader.run(
            lambda connection: _fetch(connection, "SELECT language FROM languages")
        )
        return [language for (language,) in rows]

    async def terms(
        self, paths: Iterable[ResourcePath], *, max_characters: int
    ) -> Mapping[ResourcePath, str]:
        rows = await self._contents(f"substr(terms, 1, {max_characters:d})", list(paths))
        return dict(rows)

    async def texts(self, paths: Iterable[ResourcePath]) -> Mapping[ResourcePath, index.StoredText]:
        rows = await self._contents("text, language", list(paths))
        return {path: index.StoredText(*rest) for path, *rest in rows}

    async def _contents(self, columns: str, paths: Sequence[ResourcePath]) -> Sequence[Row]:
        select = (
            f"SELECT path, {columns} FROM documents JOIN contents USING (number)"  # noqa: S608
            f" WHERE path IN ({index.marks(paths)})"
        )
        return await self._reader.run(lambda connection: _fetch(connection, select, paths))

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


class _Connection:
    """One connection to the index, used in a thread of its own."""

    def __init__(self, database: Path, *, creates: bool = False) -> None:
        self._database = database
        self._creates = creates
        self._connection: apsw.Connection | None = None
        self._file = 0
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[apsw.Connection], T], *, writes: bool = False) -> T:
        """Raises StorageError."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "podstead-search")
        loop = asyncio.get_running_loop()
        call = self._write if writes else self._read
        return await loop.run_in_executor(self._thread, call, work)

    def _read(self, work: Callable[[apsw.Connection], T]) -> T:
        with self._errors():
            return work(self._opened())

    def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        with self._errors():
            connection = self._opened()
            with connection:
                done = work(connection)
        return done

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (apsw.NotADBError, apsw.CorruptError) as error:
            self._close()
            remove_index(self._database)
            raise _error(error) from error
        except (apsw.Error, OSError) as error:
            raise _error(error) from error

    def _opened(self) -> apsw.Connection:
        """The connection to the file that is there now: a damaged one may have been replaced."""
        file = self._database.stat().st_ino if self._database.exists() else 0
        if self._connection is None or file == 0 or file != self._file:
            self._close()
            if file == 0 and not self._creates:
                raise IndexMissing(f"There is no {self._database}")
            self._connection = _open(self._database, creates=self._creates)
            self._file = self._database.stat().st_ino
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close(force=True)
            self._connection = None

    async def close(self) -> None:
        if self._thread is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
            self._thread.shutdown()
            self._thread = None


def remove_index(database: Path) -> None:
    """Remove the files of the index. Raises OSError."""
    for suffix in ("-wal", "-shm", ""):
        database.with_name(database.name + suffix).unlink(missing_ok=True)


def _open(database: Path, *, creates: bool) -> apsw.Connection:
    """Only one process of the server creates the tables, that with the lock."""
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if creates else 0)
    connection = apsw.Connection(str(database), flags=flags)
    try:
        connection.set_busy_handler(BusyHandler(_WAIT_S))
        connection.execute(_SETTINGS)
        connection.transaction_mode = "IMMEDIATE"
        if connection.pragma("user_version") != FORMAT:
            if not creates:
                raise IndexMissing(f"{database} is of another version")
            connection.pragma("journal_mode", "wal")
            with connection:
                for table in _TABLES:
                    connection.execute(f"DROP TABLE IF EXISTS {table}")
                connection.execute(_SCHEMA)
                connection.pragma("user_version", FORMAT)
    except BaseException:
        connection.close(force=True)
        raise
    return connection


def _fetch(connection: apsw.Connection, select: str, values: Sequence[object] = ()) -> list[Row]:
    rows: list[Any] = connection.execute(select.replace("%s", "?"), values).fetchall()
    return rows


def _position(connection: apsw.Connection) -> index.Position | None:
    row = connection.execute("SELECT sequence, version, cursor FROM position").fetchone()
    return None if row is None else index.Position(*row)


def _apply(connection: apsw.Connection, step: index.IndexStep) -> None:
    for subject, (of_members, own) in step.ruled.items():
        _follow_rules(connection, subject, of_members, own)
    for path in step.drops | step.puts.keys():
        _drop(connection, path)
    for document in step.puts.values():
        _put(connection, document)
    connection.executemany(
        "INSERT OR IGNORE INTO languages VALUES (?)", [(each,) for each in step.languages]
    )
    position = step.position
    connection.execute(  # there is no row if it is to be built anew
        "UPDATE position SET sequence = ?, version = ?, cursor = ?",
        (position.sequence, position.version, position.cursor),
    )


def _drop(connection: apsw.Connection, path: ResourcePath) -> None:
    number = connection.execute(
        "DELETE FROM documents WHERE path = ? RETURNING number", (path,)
    ).get
    if number is not None:
        connection.execute("DELETE FROM contents WHERE number = ?", (number,))
        connection.execute("DELETE FROM words WHERE rowid = ?", (number,))


def _put(connection: apsw.Connection, document: index.IndexedDocument) -> None:
    _note_rule(connection, document.rule)
    number = connection.execute(
        "INSERT INTO documents (path, rule, version, media_type, size_bytes, modified_ms, author)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (
            document.path,
            document.rule,
            document.version,
            document.media_type,
            document.size_bytes,
            document.modified_ms,
            document.author,
        ),
    ).get
    connection.execute(
        "INSERT INTO contents VALUES (?, ?, ?, ?)",
        (number, document.terms, document.text, document.language),
    )
    connection.execute(
        "INSERT INTO words (rowid, names, terms) VALUES (?, ?, ?)",
        (number, document.names, document.terms),
    )


def _note_rule(connection: apsw.Connection, rule: ResourcePath) -> None:
    connection.execute("INSERT OR IGNORE INTO rules VALUES (?)", (rule,))


def _follow_rules(
    connection: apsw.Connection, subject: ResourcePath, of_members: ResourcePath, own: ResourcePath
) -> None:
    _note_rule(connection, of_members)
    _note_rule(connection, own)
    connection.execute("UPDATE documents SET rule = ? WHERE path = ?", (own, subject))
    if not is_container(subject):
        return
    members = any_member(subject)
    if of_members != members:  # the ACL is gone
        connection.execute("UPDATE documents SET rule = ? WHERE rule = ?", (of_members, members))
        connection.execute("DELETE FROM rules WHERE rule = ?", (members,))
        return
    above = index.rules_above(subject)
    update = (
        "UPDATE documents SET rule = %s WHERE path > %s AND path < %s"  # noqa: S608 - marks
        f" AND rule IN ({index.marks(above)})"
    )
    values = (of_members, subject, end_of(subject), *above)
    connection.execute(update.replace("%s", "?"), values)


def _candidates(
    connection: apsw.Connection, selection: index.IndexQuery
) -> Sequence[index.Candidate]:
    question = selection.question
    where, values = index.conditions(selection)
    source, in_name = "documents AS d", "0"
    others: list[str | int] = []
    if question.wanted:
        # The terms are looked up first, and the documents by number.
        source = "words CROSS JOIN documents AS d ON d.number = words.rowid"
        where.append("words MATCH %s")
        values.append(_all_of(question))
        in_name = "d.number IN (SELECT rowid FROM words WHERE words MATCH %s)"
        others.append(f"names : ({' AND '.join(map(_expression, question.wanted))})")
    elif question.excluded:
        where.append("d.number NOT IN (SELECT rowid FROM words WHERE words MATCH %s)")
        values.append(" OR ".join(map(_expression, question.excluded)))
    order = "d.modified_ms DESC, d.path"
    if not selection.newest:
        order = f"in_name DESC, {order}"
    select = (
        f"SELECT {index.COLUMNS}, {in_name} AS in_name FROM {source} WHERE {' AND '.join(where)}"  # noqa: S608
        f" ORDER BY {order} LIMIT %s OFFSET %s"
    )
    bound = (*others, *values, selection.limit, selection.offset)
    rows = _fetch(connection, select, bound)
    return [index.candidate_of(row) for row in rows]


def _all_of(question: analysis.Question) -> str:
    """A question with something wanted, in the language of FTS5."""
    wanted = " AND ".join(map(_expression, question.wanted))
    if not question.excluded:
        return wanted
    return f"({wanted}) NOT ({' OR '.join(map(_expression, question.excluded))})"


def _expression(clause: analysis.Clause) -> str:
    # Terms have no quotes in them.
    words = f'"{" ".join(clause.words)}"' + (" *" if clause.is_prefix else "")
    stems = [f'"{stem}"' for stem in sorted(clause.stems)]
    return f"({' OR '.join([words, *stems])})"


def _error(error: Exception) -> StorageError:
    if isinstance(error, apsw.FullError) or is_full(error):
        return DiskFull()
    return StorageError(f"The index of the search cannot be used: {error}")
