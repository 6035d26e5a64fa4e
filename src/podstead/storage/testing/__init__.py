"""The engine suite: what every storage engine must do, as tests that any engine can be put to.

A test module makes an engine pass it like this::

    class TestMyEngine(EngineSuite):
        @pytest.fixture
        async def engine(self, tmp_path) -> AsyncIterator[Engine]: ...

Needs pytest with the anyio plugin in its automatic mode.
"""

from podstead.storage.testing.contract import ContractSuite
from podstead.storage.testing.engine import Engine
from podstead.storage.testing.entries import EntrySuite
from podstead.storage.testing.listening import ListeningSuite
from podstead.storage.testing.parallel import ParallelSuite
from podstead.storage.testing.registries import RegistrySuite
from podstead.storage.testing.staging import StagingSuite
from podstead.storage.testing.transactions import TransactionSuite
from podstead.storage.testing.trouble import TroubleSuite


class EngineSuite(
    ContractSuite,
    StagingSuite,
    TransactionSuite,
    RegistrySuite,
    EntrySuite,
    ListeningSuite,
    ParallelSuite,
    TroubleSuite,
):
    """All of it."""


__all__ = ["Engine", "EngineSuite"]
