"""Rate buckets and the replay cache, shared by all nodes: one statement and one round trip each.

A use is recorded durably, so that a proof cannot be used again after the database has failed over.
"""

from typing import Final

from psycopg_pool import AsyncConnectionPool

from podstead.storage.buckets import BucketRate, Taken, one_us, take_one
from podstead.storage.postgresql.connecting import reading

# The rule of storage/buckets.py in SQL: no row is returned if the bucket is empty.
_TAKE: Final = """
    INSERT INTO rate_buckets AS b (bucket, full_at_us) VALUES (%(bucket)s, %(now)s + %(one)s)
    ON CONFLICT (bucket) DO UPDATE
    SET full_at_us = %(now)s + least(greatest(b.full_at_us - %(now)s, 0), %(empty)s) + %(one)s
    WHERE least(greatest(b.full_at_us - %(now)s, 0), %(empty)s) + %(one)s <= %(empty)s
    RETURNING 1
"""
_FULL_AT: Final = "SELECT full_at_us FROM rate_buckets WHERE bucket = %s"
_GIVE_BACK: Final = "UPDATE rate_buckets SET full_at_us = full_at_us - %s WHERE bucket = %s"
_USE: Final = (
    "INSERT INTO used_once (key, until_ms) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE"
    " SET until_ms = excluded.until_ms WHERE used_once.until_ms <= %s RETURNING 1"
)
_IS_USED: Final = "SELECT 1 FROM used_once WHERE key = %s AND until_ms > %s"


class Ephemeral:
    """Stores rate buckets and used keys."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool

    async def take(self, bucket: str, rate: BucketRate, *, now_ms: int) -> int | None:
        """Take a token; ``None`` on success, otherwise the whole seconds to wait.

        Raises StorageError, Overloaded.
        """
        one = one_us(rate.per_s)
        values = {
            "bucket": bucket,
            "now": now_ms * 1000,
            "one": one,
            "empty": rate.capacity * one,
        }
        with reading():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(_TAKE, values)
                if await cursor.fetchone() is not None:
                    return None
        # Somebody may have waited long enough in between; then the answer is to try again soon.
        return await self.wait_s(bucket, rate, now_ms=now_ms) or 1

    async def wait_s(self, bucket: str, rate: BucketRate, *, now_ms: int) -> int | None:
        """What :meth:`take` would return, without taking a token. Raises StorageError,
        Overloaded."""
        with reading():
            async with self._pool.connection() as connection:
                row = await (await connection.execute(_FULL_AT, (bucket,))).fetchone()
            outcome = take_one(None if row is None else row[0], rate, now_ms=now_ms)
        return None if isinstance(outcome, Taken) else outcome.seconds

    async def give_back(self, bucket: str, per_s: float) -> None:
        """Return a token that was taken. Raises StorageError, Overloaded."""
        with reading():
            async with self._pool.connection() as connection:
                await connection.execute(_GIVE_BACK, (one_us(per_s), bucket))

    async def use_once(self, key: bytes, *, until_ms: int, now_ms: int) -> bool:
        """Record a use; False if the key was used before. Raises StorageError, Overloaded."""
        return await self._is_there(_USE, (key, until_ms, now_ms))

    async def is_used(self, key: bytes, *, now_ms: int) -> bool:
        """Whether the key has been used. Raises StorageError, Overloaded."""
        return await self._is_there(_IS_USED, (key, now_ms))

    async def _is_there(self, statement: str, values: tuple[bytes | int, ...]) -> bool:
        with reading():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(statement.encode(), values)
                return await cursor.fetchone() is not None
