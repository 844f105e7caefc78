"""How a dataset gets to its workers: pickled once, into memory that all of them map.

Arrays and tensors are not copied through the pickle: they lie behind it in the same memory, and a worker's are views of
a private mapping. Workers so share the pages that they only read. Descriptors that objects need (a packed block's) are
passed beside.
"""

from __future__ import annotations

import threading

__all__ = ["attached", "passed"]


class _Passing(threading.local):
    """Descriptors of the shipment that is being packed or unpacked in this thread."""

    sent: list[int] | None = None
    received: list[int] | None = None


_passing = _Passing()


def passed(descriptor: int) -> int | None:
    """Notes a descriptor that goes along; returns its number in the shipment, None where nothing is being shipped."""
    if _passing.sent is None:
        return None
    if descriptor not in _passing.sent:
        _passing.sent.append(descriptor)
    return _passing.sent.index(descriptor)


def attached(number: int) -> int:
    """Returns the descriptor of that number in the shipment that is being unpacked."""
    if _passing.received is None:
        raise RuntimeError("pack: expected to be unpickled in a worker of a loader.")
    return _passing.received[number]
