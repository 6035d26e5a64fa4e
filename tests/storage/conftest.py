"""The engine suite is part of the package; its assertions explain themselves like any test's."""

import pytest

pytest.register_assert_rewrite("podstead.storage.testing")
