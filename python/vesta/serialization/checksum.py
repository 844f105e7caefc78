"""Checksums (CRC-32) of long blocks, part by part, in several threads.

Note [Parts of a checksum]
``zlib.crc32`` runs at about 1 GB/s and releases the GIL, and so do reading and writing a file. A block is therefore cut
into parts that threads handle on their own, and the checksum of the whole follows from those of the parts: appending n
zero bytes to a message multiplies its polynomial by x^(8n), modulo the CRC's polynomial, so

    crc(a + b) = crc(a) * x^(8 len(b)) + crc(b)

as zlib's ``crc32_combine`` has it, which Python does not offer. Polynomials over GF(2) are integers whose bits are
reflected: bit 31 is the coefficient of x^0.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar

__all__ = ["PART", "STEP", "combine", "of_parts", "run_in_threads"]

#: Bytes of a part; 4 MiB is as fast as any (benchmarks/checkpoints.py).
PART = 4 << 20
#: Bytes that are read or written before their checksum is taken, while they are in the cache.
STEP = 256 << 10
_POLYNOMIAL = 0xEDB88320
_ONE = 1 << 31
T = TypeVar("T")


def _multiply(a: int, b: int) -> int:
    """Multiplies two polynomials modulo the CRC's."""
    product = 0
    while a:
        if a & _ONE:
            product ^= b
        a = (a << 1) & 0xFFFFFFFF
        b = (b >> 1) ^ (_POLYNOMIAL if b & 1 else 0)
    return product


@lru_cache(maxsize=64)
def _shift(length: int) -> int:
    """Returns x^(8 length): what ``length`` more bytes multiply a checksum with."""
    result, power, bits = _ONE, _ONE >> 1, 8 * length
    while bits:
        if bits & 1:
            result = _multiply(power, result)
        power = _multiply(power, power)
        bits >>= 1
    return result


def combine(first: int, second: int, length: int) -> int:
    """Returns the checksum of two blocks in a row; ``length``: bytes of the second."""
    return _multiply(_shift(length), first) ^ second


def of_parts(parts: Iterable[tuple[int, int]]) -> int:
    """Returns the checksum of a block from its parts' (checksum, number of bytes)."""
    whole = 0
    for checksum, length in parts:
        whole = combine(whole, checksum, length)
    return whole


def run_in_threads(function: Callable[[Any], T], work: list[Any], nbytes: int) -> list[T]:
    """Calls ``function`` with each item, in threads where there are enough bytes to be worth it; results in order.

    The first error is raised once every thread has ended.
    """
    threads = min(len(work), len(os.sched_getaffinity(0)), 8)
    if threads < 2 or nbytes < 2 * PART:
        return [function(item) for item in work]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, work))


def of_block(block: memoryview) -> int:
    """Returns the checksum of a block, its parts in threads."""
    if len(block) < 2 * PART:
        return zlib.crc32(block)
    parts = [block[i : i + PART] for i in range(0, len(block), PART)]
    return of_parts(zip(run_in_threads(zlib.crc32, parts, len(block)), map(len, parts)))
