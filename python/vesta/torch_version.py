"""``TorchVersion``: a version as a text that compares as a version."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["TorchVersion"]


def _key(version: Any) -> tuple[Any, ...]:
    """Returns what a version is compared by: its numbers, without zeros at the end, then whether it is final."""
    text = ".".join(map(str, version)) if isinstance(version, (tuple, list)) else str(version)
    found = re.match(r"\s*v?(\d+(?:\.\d+)*)[-_.]?(a|alpha|b|beta|c|rc|pre|preview|dev|post)?[-_.]?(\d*)", text.lower())
    if found is None:
        raise ValueError(f"TorchVersion: expected a version such as '2.15.0', got {version!r}.")
    numbers = [int(part) for part in found.group(1).split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    rank = {"dev": 0, "a": 1, "alpha": 1, "b": 2, "beta": 2, None: 4, "post": 5}.get(found.group(2), 3)
    local = text.partition("+")[2]
    return tuple(numbers), rank, int(found.group(3) or 0), local


class TorchVersion(str):
    """A version as a text; comparisons with texts and tuples are those of versions (PEP 440).

    Raises:
        ValueError: in a comparison with what is no version.

    Example::

        >>> from vesta.torch_version import TorchVersion
        >>> TorchVersion("2.15.0") > "2.2", TorchVersion("2.15.0") >= (2, 15)
        (True, True)
    """

    def __lt__(self, other: Any) -> bool:
        return _key(self) < _key(other)

    def __le__(self, other: Any) -> bool:
        return _key(self) <= _key(other)

    def __gt__(self, other: Any) -> bool:
        return _key(self) > _key(other)

    def __ge__(self, other: Any) -> bool:
        return _key(self) >= _key(other)

    def __eq__(self, other: object) -> bool:
        try:
            return _key(self) == _key(other)
        except ValueError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__
