"""The engine suite: tests that every storage engine must pass.

A test module runs an engine against it like this::

    class TestMyEngine(EngineSuite):
        @pytest.fixture
        async def engine(self, tmp_path) -> AsyncIterator[Engine]: ...
"""

from tests.storage.engine_suite.contract import ContractSuite
from tests.storage.engine_suite.copies import CopySuite
from tests.storage.engine_suite.engine import Engine
from tests.storage.engine_suite.entries import EntrySuite
from tests.storage.engine_suite.former import FormerSuite
from tests.storage.engine_suite.listening import ListeningSuite
from tests.storage.engine_suite.parallel import ParallelSuite
from tests.storage.engine_suite.registries import RegistrySuite
from tests.storage.engine_suite.staging import StagingSuite
from tests.storage.engine_suite.transactions import TransactionSuite
from tests.storage.engine_suite.trouble import TroubleSuite


class EngineSuite(
    ContractSuite,
    StagingSuite,
    CopySuite,
    TransactionSuite,
    RegistrySuite,
    EntrySuite,
    FormerSuite,
    ListeningSuite,
    ParallelSuite,
    TroubleSuite,
):
    """All of it."""


__all__ = ["Engine", "EngineSuite"]
