"""What ``weights_only=True`` may name and call: PyTorch's list, and what the program has added."""

from __future__ import annotations

from _codecs import encode
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, Union

import vesta.nn  # noqa: F401  # whole, before parts of it: other threads may import it
from vesta import Tensor
from vesta.nn.parameter import Parameter
from vesta.storage import TypedStorage, UntypedStorage

from . import rebuilding

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals"]

Allowed = Union[Callable[..., Any], tuple[Callable[..., Any], str]]
#: Modules whose contents cannot be allowed.
BLOCKED_MODULES = ("sys", "os", "posix", "nt")
_added: set[Any] = set()


def add_safe_globals(safe_globals: list[Allowed]) -> None:
    """Allows classes and functions in files that are loaded with ``weights_only=True``.

    Instances of an allowed class can be made and get their attributes; an allowed function can be called with any
    arguments. Allow only what is harmless whatever a file calls it with.

    Args:
        safe_globals: classes and functions; or pairs of one and the name that it has in the file, if that is not
            ``{module}.{qualname}``. A class of ``vesta`` is found under its name in ``torch`` too.

    Example::

        >>> import collections, io, vesta
        >>> file = io.BytesIO()
        >>> vesta.save(collections.defaultdict(list, a=[1]), file)
        >>> _ = file.seek(0)
        >>> with vesta.serialization.safe_globals([collections.defaultdict, list]):
        ...     vesta.load(file)["a"]
        [1]
    """
    _added.update(safe_globals)


def get_safe_globals() -> list[Allowed]:
    """Returns what ``add_safe_globals`` has allowed."""
    return list(_added)


def clear_safe_globals() -> None:
    """Takes back all that ``add_safe_globals`` has allowed."""
    _added.clear()


class safe_globals:
    """A context in which classes and functions are allowed; see ``add_safe_globals``.

    Args:
        safe_globals: as in ``add_safe_globals``.

    Example::

        >>> import vesta
        >>> with vesta.serialization.safe_globals([print]):
        ...     vesta.serialization.get_safe_globals()
        [<built-in function print>]
    """

    def __init__(self, safe_globals: list[Allowed]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self._new = [entry for entry in self.safe_globals if entry not in _added]
        _added.update(self._new)

    def __exit__(self, *error: Any) -> None:
        _added.difference_update(self._new)


def user_allowed() -> dict[str, Any]:
    """Returns what the program has allowed, by name.

    Raises:
        ValueError, TypeError: an entry is a tuple, but no pair of a callable and a name.
    """
    found = {}
    for entry in _added:
        if not isinstance(entry, tuple):
            names = [f"{entry.__module__}.{entry.__qualname__}"]
        elif len(entry) != 2:
            raise ValueError(f"add_safe_globals: expected pairs of a callable and a name, got {len(entry)} values.")
        elif type(entry[1]) is not str:
            raise TypeError(f"add_safe_globals: expected a name as str, got {type(entry[1]).__name__}.")
        else:
            entry, name = entry
            names = [name]
        if names[0].startswith("vesta."):
            from .torch_names import torch_name_of

            home, _, name = names[0].rpartition(".")
            names.append(f"{torch_name_of(home, name)}.{name}")
        found.update(dict.fromkeys(names, entry))
    return found


# ---- what the list of PyTorch may be called with ----

#: Parts of a key, or of a member of a set, that are hashed at most.
_KEY_PARTS = 4096
_PLAIN_KEYS = frozenset((str, int, float, bool, bytes, type(None)))


def checked_key(key: Any) -> Any:
    """Returns a key for a dict or set. ValueError: its hash would take forever or overflow the stack.

    Tuples in tuples are hashed part by part, shared parts again and again, and at a depth that the file chooses.
    """
    if type(key) in _PLAIN_KEYS:
        return key
    parts, count = [key], 0
    while parts:
        part = parts.pop()
        if isinstance(part, (tuple, frozenset)):
            count += len(part) + 1
            if count > _KEY_PARTS:
                raise ValueError(f"a key has more than {_KEY_PARTS} parts")
            parts.extend(part)
    return key


def _ordered_dict(items: Any = ()) -> OrderedDict[Any, Any]:
    made: OrderedDict[Any, Any] = OrderedDict()
    for key, value in items.items() if isinstance(items, dict) else items:
        made[checked_key(key)] = value
    return made


def _counter(items: Any = ()) -> Counter[Any]:
    if items and not isinstance(items, dict):
        raise ValueError(f"Counter expects a dict, got {type(items).__name__}")
    return Counter(items or {})


def _set(items: Any = ()) -> set[Any]:
    if not isinstance(items, (list, tuple)):
        raise ValueError(f"set expects a list, got {type(items).__name__}")
    return {checked_key(item) for item in items}


def _bytearray(*args: Any) -> bytearray:
    if args and not isinstance(args[0], (bytes, str, list)):  # a number would be a size
        raise ValueError(f"bytearray expects bytes, got {type(args[0]).__name__}")
    return bytearray(*args)


def _complex(real: Any = 0.0, imag: Any = 0.0) -> complex:
    return complex(float(real), float(imag))


def _encode(text: Any, encoding: Any = "latin1", *rest: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "ascii", "utf-8", "utf8"):
        raise ValueError(f"encode expects a text in latin1, got {encoding!r:.40}")
    return text.encode(encoding)


def _empty_tensor(*args: Any) -> Tensor:
    if args:
        raise ValueError("Tensor expects no arguments")
    return Tensor()


def _parameter(data: Any = None, requires_grad: Any = True) -> Parameter:
    return rebuilding._parameter(Tensor() if data is None else data, requires_grad)


def _no_storage(*args: Any) -> Any:
    raise ValueError("a storage is expected in a record of its own")


def plain_globals() -> dict[str, Any]:
    """Returns the names outside of PyTorch that are allowed."""
    return {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "_codecs.encode": encode,
        "builtins.bytearray": bytearray,
        "builtins.set": set,
        "builtins.complex": complex,
    }


def calls() -> dict[Any, Callable[..., Any]]:
    """Returns what is run when a file calls an allowed name, by what the name stands for."""
    if not rebuilding.checked_calls:
        from .torch_names import Missing, weights_only_globals

        table: dict[Any, Callable[..., Any]] = {}
        for value in weights_only_globals().values():
            if isinstance(value, (rebuilding.LegacyTensorType, Missing)) or getattr(value, "__module__", "") == (
                rebuilding.__name__
            ):
                table[value] = value
        table.update({OrderedDict: _ordered_dict, Counter: _counter, set: _set, bytearray: _bytearray})
        table.update({complex: _complex, encode: _encode, Tensor: _empty_tensor, Parameter: _parameter})
        table.update({TypedStorage: _no_storage, UntypedStorage: _no_storage})
        rebuilding.checked_calls.update(table)  # at once: another thread may read it
    return rebuilding.checked_calls
