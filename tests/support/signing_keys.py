"""Signing keys of the application in this process: each is generated once, and read once.

To generate an RSA key, or to check its primes when it is read, takes longer than most tests.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import defaultdict
from collections.abc import Iterator

import pytest

from podstead.jose.tokens import SigningAlgorithm, SigningKeyPair


class KeyPairs:
    """Key pairs that differ within a test; the next test gets the same ones.

    What is generated between tests, for a fixture of several, is given to nobody else.
    """

    def __init__(self) -> None:
        self._generate = SigningKeyPair.generate
        self._pairs: dict[SigningAlgorithm, list[SigningKeyPair]] = defaultdict(list)
        self._given: dict[SigningAlgorithm, int] = defaultdict(int)
        self._lock = threading.Lock()
        self._in_test = False

    @contextlib.contextmanager
    def for_one_test(self) -> Iterator[None]:
        """Begin with the first ones again."""
        self._given.clear()
        self._in_test = True
        yield
        self._in_test = False

    def next(self, algorithm: SigningAlgorithm) -> SigningKeyPair:
        """What ``SigningKeyPair.generate`` returns."""
        if not self._in_test:
            return self._generate(algorithm)
        with self._lock:
            pairs, number = self._pairs[algorithm], self._given[algorithm]
            self._given[algorithm] += 1
            if number == len(pairs):
                pairs.append(self._generate(algorithm))
            return pairs[number]


@contextlib.contextmanager
def generated_once() -> Iterator[KeyPairs]:
    """Generate and read every key once while this lasts."""
    pairs = KeyPairs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SigningKeyPair, "generate", pairs.next)
        patch.setattr(SigningKeyPair, "load", functools.cache(SigningKeyPair.load))
        yield pairs
