"""The system's clock and randomness. No other module reads them."""

import secrets
import time


class SystemClock:
    """The wall clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SystemRandomness:
    """The operating system's randomness."""

    def token_hex(self, size_bytes: int) -> str:
        return secrets.token_hex(size_bytes)
