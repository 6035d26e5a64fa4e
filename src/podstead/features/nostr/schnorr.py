"""Verifies signatures of BIP-340, with libsecp256k1 where it is available, else in plain Python.

All inputs are public, so the Python code, which follows the specification, need not run in constant
time. Pure.
"""

import hashlib
from typing import Final

try:
    from coincurve import PublicKeyXOnly

    IS_NATIVE: Final = True
    """Whether verification is native and takes microseconds; otherwise it takes milliseconds."""
except ImportError:  # pragma: no cover - the interpreter decides
    IS_NATIVE = False  # type: ignore[misc]

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64

_FIELD: Final = 2**256 - 2**32 - 977
_ORDER: Final = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
_TAG: Final = hashlib.sha256(b"BIP0340/challenge").digest() * 2

_Point = tuple[int, int, int]
"""Jacobian coordinates: (X, Y, Z) is the point (X/Z², Y/Z³); Z is 0 at infinity."""

_INFINITY: Final[_Point] = (1, 1, 0)
_GENERATOR: Final[_Point] = (
    0x79BE667E_F9DCBBAC_55A06295_CE870B07_029BFCDB_2DCE28D9_59F2815B_16F81798,
    0x483ADA77_26A3C465_5DA4FBFC_0E1108A8_FD17B448_A6855419_9C47D08F_FB10D4B8,
    1,
)


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether this x-only public key made the signature of the message (BIP-340)."""
    if IS_NATIVE:
        return _verify_natively(public_key, message, signature)
    return verify_in_python(public_key, message, signature)


def _verify_natively(public_key: bytes, message: bytes, signature: bytes) -> bool:
    # The library reads the expected number of bytes without checking the actual length.
    if len(public_key) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    try:
        return bool(PublicKeyXOnly(public_key).verify(signature, message))
    except ValueError:  # not a point of the curve
        return False


def verify_in_python(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether this x-only public key made the signature of the message (BIP-340, Verify)."""
    if len(public_key) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    key = _lift_x(int.from_bytes(public_key, "big"))
    r = int.from_bytes(signature[:KEY_BYTES], "big")
    s = int.from_bytes(signature[KEY_BYTES:], "big")
    if key is None or r >= _FIELD or s >= _ORDER:
        return False
    hashed = hashlib.sha256(_TAG + signature[:KEY_BYTES] + public_key + message).digest()
    challenge = int.from_bytes(hashed, "big") % _ORDER
    x, y, z = _sum_of_products(s, _GENERATOR, _ORDER - challenge, key)
    if z == 0:
        return False
    inverse = pow(z, -1, _FIELD)
    even = y * pow(inverse, 3, _FIELD) % _FIELD % 2 == 0
    return even and x * inverse * inverse % _FIELD == r


def _lift_x(x: int) -> _Point | None:
    """The point with that x and an even y; ``None`` if the curve has none."""
    if x >= _FIELD:
        return None
    square = (pow(x, 3, _FIELD) + 7) % _FIELD
    y = pow(square, (_FIELD + 1) // 4, _FIELD)
    if y * y % _FIELD != square:
        return None
    return x, y if y % 2 == 0 else _FIELD - y, 1


def _sum_of_products(a: int, p: _Point, b: int, q: _Point) -> _Point:
    """``a`` times ``p`` plus ``b`` times ``q``, with shared doublings (Straus and Shamir)."""
    both = _add(p, q)
    total = _INFINITY
    for position in range(max(a.bit_length(), b.bit_length()) - 1, -1, -1):
        total = _double(total)
        of_a, of_b = a >> position & 1, b >> position & 1
        if of_a or of_b:
            total = _add(total, both if of_a and of_b else p if of_a else q)
    return total


def _double(point: _Point) -> _Point:
    # On this curve no point has y = 0; infinity doubles to a point with z = 0.
    x, y, z = point
    yy = y * y % _FIELD
    s = 4 * x * yy % _FIELD
    m = 3 * x * x % _FIELD
    doubled_x = (m * m - 2 * s) % _FIELD
    return doubled_x, (m * (s - doubled_x) - 8 * yy * yy) % _FIELD, 2 * y * z % _FIELD


def _add(one: _Point, other: _Point) -> _Point:
    if one[2] == 0:
        return other
    if other[2] == 0:
        return one
    x1, y1, z1 = one
    x2, y2, z2 = other
    zz1, zz2 = z1 * z1 % _FIELD, z2 * z2 % _FIELD
    u1, u2 = x1 * zz2 % _FIELD, x2 * zz1 % _FIELD
    s1, s2 = y1 * z2 * zz2 % _FIELD, y2 * z1 * zz1 % _FIELD
    h, r = (u2 - u1) % _FIELD, (s2 - s1) % _FIELD
    if h == 0:
        return _double(one) if r == 0 else _INFINITY
    hh = h * h % _FIELD
    hhh, v = h * hh % _FIELD, u1 * hh % _FIELD
    x = (r * r - hhh - 2 * v) % _FIELD
    return x, (r * (v - x) - s1 * hhh) % _FIELD, h * z1 * z2 % _FIELD
