"""The command `python -m bench.distance`: a proxy that makes a database seem farther away.

Every byte arrives half of the delay later, in either direction, so a round trip takes the delay
longer; bytes on the way do not wait for each other, as with `tc netem`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from functools import partial
from pathlib import Path
from typing import Final

import uvloop

SOCKET_NAME: Final = ".s.PGSQL.5432"
_PIECE_BYTES: Final = 64 * 1024


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float
) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            loop.call_later(delay_s, writer.write, piece)
    loop.call_later(delay_s, writer.close)


async def _serve(
    target: Path, delay_s: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    there, back = await asyncio.open_unix_connection(target)
    await asyncio.gather(_pass_on(reader, back, delay_s), _pass_on(there, writer, delay_s))


async def _run(listen: Path, target: Path, delay_s: float) -> None:
    server = await asyncio.start_unix_server(partial(_serve, target, delay_s / 2), listen)
    await server.serve_forever()


def main() -> None:
    """Run until it is ended."""
    parser = argparse.ArgumentParser("python -m bench.distance", description=__doc__)
    parser.add_argument("listen", type=Path, help="the folder of the socket to listen on")
    parser.add_argument("target", type=Path, help="the folder of the socket of the database")
    parser.add_argument("delay_ms", type=float, help="what is added to a round trip")
    options = parser.parse_args()
    listen, target = options.listen / SOCKET_NAME, options.target / SOCKET_NAME
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_run(listen, target, options.delay_ms / 1000))


if __name__ == "__main__":
    main()
