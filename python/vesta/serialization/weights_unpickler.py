"""The interpreter of pickles for ``weights_only=True``: it runs no code but that of allowed names.

A pickle is a program for a stack machine. ``pickle.Unpickler`` imports and calls whatever the program names; this
machine knows the names of ``safe_globals`` only, builds nothing but plain containers and allowed objects, and checks
what it hands to them. It knows the opcodes of protocols 2 to 5.

Note [What a hostile pickle can do]
It may be cut off, pop from an empty stack, use what was never stored (each is an error with the offset), claim lengths
that are not there (nothing is allocated before the bytes are seen to exist), make dicts and sets hash nested tuples
(``safe_globals.checked_key``), or ask allowed classes for a billion elements (``safe_globals.calls``). It cannot
recurse: the machine is a loop.
"""

from __future__ import annotations

import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import vesta.nn  # noqa: F401  # whole, before parts of it: other threads may import it
from vesta import Tensor
from vesta.nn.parameter import Parameter

from .safe_globals import BLOCKED_MODULES, calls, checked_key, plain_globals, user_allowed
from .torch_names import Missing, weights_only_globals

__all__ = ["WeightsUnpickler"]

_LONGEST_NAME = 4096


class _Damaged(Exception):
    """A pickle that is no program for this machine."""


class _Passed(Exception):
    """An error of what loads storages (``map_location`` may be the caller's code), on its way through the machine."""


class WeightsUnpickler:
    """One run over a pickle.

    Args:
        data: the pickle, or its beginning.
        persistent_load: makes a storage from its description, a tuple.
        encoding: of texts that Python 2 has written as bytes; ``"bytes"`` leaves them.
        more: returns the bytes that follow ``data``, empty at the end.

    Raises:
        UnpicklingError: of ``load``; a name that is not allowed, or a damaged pickle.
    """

    def __init__(
        self,
        data: bytes,
        persistent_load: Callable[[Any], Any] | None = None,
        encoding: str = "utf-8",
        more: Callable[[], bytes] | None = None,
    ) -> None:
        self.data, self.at, self.base = data, 0, 0
        self.persistent_load, self.encoding, self.more = persistent_load, encoding, more
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.globals = {**weights_only_globals(), **plain_globals()}
        self.added = user_allowed()
        self.calls = {**calls(), **{value: value for value in self.added.values()}}

    def load(self) -> Any:
        """Returns the object; ``consumed`` bytes were read for it."""
        operations = _OPERATIONS
        try:
            while True:
                if self.at >= len(self.data):
                    self._refill(1)
                code = self.data[self.at]
                self.at += 1
                if code == 0x2E:  # STOP
                    return self._result()
                operation = operations.get(code)
                if operation is None:
                    raise _Damaged(f"an unknown opcode {code:#04x}")
                operation(self)
        except UnpicklingError:
            raise
        except _Passed as passed:
            raise passed.args[0] from None
        except NotImplementedError:
            raise
        except (_Damaged, ValueError, TypeError, LookupError, OverflowError, AttributeError, struct.error) as error:
            why = {"IndexError": "its stack is empty", "KeyError": "it uses what it has not stored"}
            text = str(error) if type(error) is not KeyError else ""
            if type(error) is IndexError and "pop from" not in text and "index out of range" not in text:
                why = {}
            raise UnpicklingError(
                f"load: expected an intact pickle, but at byte {self.consumed}: {why.get(type(error).__name__) or text}"
            ) from error

    @property
    def consumed(self) -> int:
        """The number of bytes read."""
        return self.base + self.at

    def _result(self) -> Any:
        if self.below or len(self.stack) != 1:
            raise _Damaged(f"it ends with {len(self.stack)} objects instead of one")
        return self.stack.pop()

    # ---- bytes ----

    def _refill(self, count: int) -> None:
        """Reads on until there are ``count`` bytes."""
        parts = [self.data[self.at :]]
        have = len(parts[0])
        while have < count:
            block = self.more() if self.more else b""
            if not block:
                raise _Damaged("it is cut off")
            parts.append(block)
            have += len(block)
        self.base += self.at
        self.data, self.at = b"".join(parts), 0

    def take(self, count: int) -> bytes:
        """Returns the next bytes."""
        if self.at + count > len(self.data):
            self._refill(count)
        begin = self.at
        self.at += count
        return self.data[begin : self.at]

    def number(self, count: int) -> int:
        """Returns the next bytes as a number without sign."""
        return int.from_bytes(self.take(count), "little")

    def line(self) -> str:
        """Returns the text to the end of the line."""
        end = self.data.find(b"\n", self.at, self.at + _LONGEST_NAME)
        while end < 0:
            if len(self.data) - self.at >= _LONGEST_NAME:
                raise _Damaged(f"a name of more than {_LONGEST_NAME} bytes")
            self._refill(len(self.data) - self.at + 1)
            end = self.data.find(b"\n", self.at, self.at + _LONGEST_NAME)
        text = self.data[self.at : end].decode("utf-8")
        self.at = end + 1
        return text

    def text_of(self, raw: bytes) -> Any:
        """Returns a text of Python 2."""
        return raw if self.encoding == "bytes" else raw.decode(self.encoding)

    # ---- the stack ----

    def pop_mark(self) -> list[Any]:
        """Returns what was pushed since the last mark."""
        items = self.stack
        if not self.below:
            raise _Damaged("there is no mark")
        self.stack = self.below.pop()
        return items

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def top(self, kinds: tuple[type, ...], what: str) -> Any:
        """Returns the topmost object, which must be exactly of one of the kinds, or of a class that the program has
        allowed."""
        target = self.stack[-1]
        if type(target) not in kinds and type(target) not in self.added.values():
            raise _Damaged(f"{what} expects {kinds[0].__name__}, got {type(target).__name__}")
        return target

    def set_items(self, items: list[Any]) -> None:
        target = self.top((dict, OrderedDict, Counter), "SETITEMS")
        if len(items) % 2:
            raise _Damaged("a key without a value")
        for i in range(0, len(items), 2):
            target[checked_key(items[i])] = items[i + 1]

    def push_global(self, module: str, name: str) -> None:
        """Pushes what an allowed name stands for. UnpicklingError: it is not allowed."""
        if (module, name) in NAME_MAPPING:
            module, name = NAME_MAPPING[module, name]
        elif module in IMPORT_MAPPING:
            module = IMPORT_MAPPING[module]
        full = f"{module}.{name}"
        if module in BLOCKED_MODULES:
            raise UnpicklingError(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        if full in self.globals:
            value = self.globals[full]
            if isinstance(value, Missing):
                value.refuse()
            self.stack.append(value)
        elif full in self.added:
            self.stack.append(self.added[full])
        else:
            shown = full[len("builtins.") :] if module == "builtins" else full
            raise UnpicklingError(
                f"Unsupported global: GLOBAL {shown} was not an allowed global by default. Please use "
                f"`vesta.serialization.add_safe_globals([{shown}])` or the "
                f"`vesta.serialization.safe_globals([{shown}])` context manager to allowlist this global if you trust "
                "this class/function."
            )

    def reduce(self) -> None:
        args, function = self.stack.pop(), self.stack.pop()
        try:
            call = self.calls.get(function)
        except TypeError:
            call = None
        if call is None:
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {_shown(function)}")
        if type(args) is not tuple:
            raise _Damaged(f"arguments of a call are a tuple, got {type(args).__name__}")
        self.stack.append(call(*args))

    def new_object(self, keywords: bool = False) -> None:
        """Makes an object of a class without calling its ``__init__``."""
        named = self.stack.pop() if keywords else {}
        args, cls = self.stack.pop(), self.stack.pop()
        if isinstance(cls, type) and cls in self.added.values():
            self.stack.append(cls.__new__(cls, *args, **named))
        elif isinstance(cls, type) and cls in self.calls and not named:
            self.stack.append(self.calls[cls](*args))
        else:
            raise UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{_shown(cls)}"
            )

    def build(self) -> None:
        """Gives the topmost object its attributes."""
        state, target = self.stack.pop(), self.stack[-1]
        kind = type(target)
        if kind is OrderedDict:
            if not isinstance(state, dict):
                raise _Damaged(f"attributes of an OrderedDict are a dict, got {type(state).__name__}")
            target.__dict__.update(state)
        elif kind in self.added.values():
            _set_attributes(target, state)
        elif kind in (Tensor, Parameter):
            raise NotImplementedError("load: expected a file of PyTorch 0.4 or later, got a tensor in an older form.")
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got "
                f"{_shown(kind)}"
            )

    def persistent(self) -> None:
        description = self.stack.pop()
        if type(description) is not tuple or not description or self.persistent_load is None:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(description).__name__}")
        if description[0] not in ("storage", b"storage"):
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {_shown(description[0])}")
        try:
            storage = self.persistent_load(description)
        except Exception as error:
            raise _Passed(error) from None
        self.stack.append(storage)


def _shown(value: Any) -> str:
    """Returns a short text about a value of the file; of a container only its type, which cannot be long."""
    if isinstance(value, (str, bytes, int)):
        return repr(value[:60] if isinstance(value, (str, bytes)) else value % 10**20)
    return getattr(value, "__qualname__", None) or type(value).__name__


def _set_attributes(target: Any, state: Any) -> None:
    """Does what ``pickle`` does to an object of a class that the program has allowed."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


# ---- opcodes ----


def _push(value: Any) -> Callable[[WeightsUnpickler], None]:
    return lambda m: m.stack.append(value)


def _push_new(make: Callable[[], Any]) -> Callable[[WeightsUnpickler], None]:
    return lambda m: m.stack.append(make())


def _push_number(count: int) -> Callable[[WeightsUnpickler], None]:
    return lambda m: m.stack.append(m.number(count))


def _push_int(m: WeightsUnpickler) -> None:
    m.stack.append(int.from_bytes(m.take(4), "little", signed=True))


def _push_long(width: int) -> Callable[[WeightsUnpickler], None]:
    return lambda m: m.stack.append(int.from_bytes(m.take(m.number(width)), "little", signed=True))


def _push_float(m: WeightsUnpickler) -> None:
    m.stack.append(struct.unpack(">d", m.take(8))[0])


def _push_text(width: int) -> Callable[[WeightsUnpickler], None]:
    return lambda m: m.stack.append(str(m.take(m.number(width)), "utf-8", "surrogatepass"))


def _push_old_text(width: int) -> Callable[[WeightsUnpickler], None]:
    return lambda m: m.stack.append(m.text_of(m.take(m.number(width))))


def _push_bytes(width: int) -> Callable[[WeightsUnpickler], None]:
    return lambda m: m.stack.append(m.take(m.number(width)))


def _get(width: int) -> Callable[[WeightsUnpickler], None]:
    return lambda m: m.stack.append(m.memo[m.number(width)])


def _put(width: int) -> Callable[[WeightsUnpickler], None]:
    def put(m: WeightsUnpickler) -> None:
        m.memo[m.number(width)] = m.stack[-1]

    return put


def _memoize(m: WeightsUnpickler) -> None:
    m.memo[len(m.memo)] = m.stack[-1]


def _tuple(count: int) -> Callable[[WeightsUnpickler], None]:
    def make(m: WeightsUnpickler) -> None:
        if len(m.stack) < count:
            raise IndexError("pop from empty stack")
        m.stack[-count:] = [tuple(m.stack[-count:])]

    return make


def _tuple_of_mark(m: WeightsUnpickler) -> None:
    items = m.pop_mark()
    m.stack.append(tuple(items))


def _append(m: WeightsUnpickler) -> None:
    item = m.stack.pop()
    m.top((list,), "APPEND").append(item)


def _appends(m: WeightsUnpickler) -> None:
    items = m.pop_mark()
    m.top((list,), "APPENDS").extend(items)


def _set_item(m: WeightsUnpickler) -> None:
    value, key = m.stack.pop(), m.stack.pop()
    m.set_items([key, value])


def _add_items(m: WeightsUnpickler) -> None:
    items = m.pop_mark()
    m.top((set,), "ADDITEMS").update(map(checked_key, items))


def _frozen_set(m: WeightsUnpickler) -> None:
    items = m.pop_mark()
    m.stack.append(frozenset(map(checked_key, items)))


def _global(m: WeightsUnpickler) -> None:
    module = m.line()
    m.push_global(module, m.line())


def _stack_global(m: WeightsUnpickler) -> None:
    name, module = m.stack.pop(), m.stack.pop()
    if type(name) is not str or type(module) is not str:
        raise _Damaged("a name is a text")
    m.push_global(module, name)


def _pop(m: WeightsUnpickler) -> None:
    if m.stack:
        m.stack.pop()
    else:
        m.pop_mark()


def _protocol(m: WeightsUnpickler) -> None:
    version = m.number(1)
    if version > 5:
        raise _Damaged(f"protocol {version} is unknown")


_OPERATIONS: dict[int, Callable[[WeightsUnpickler], Any]] = {
    ord("("): WeightsUnpickler.mark,
    ord("0"): _pop,
    ord("1"): WeightsUnpickler.pop_mark,
    ord("N"): _push(None),
    0x88: _push(True),
    0x89: _push(False),
    ord(")"): _push(()),
    ord("]"): _push_new(list),
    ord("}"): _push_new(dict),
    0x8F: _push_new(set),
    ord("J"): _push_int,
    ord("K"): _push_number(1),
    ord("M"): _push_number(2),
    ord("G"): _push_float,
    0x8A: _push_long(1),
    0x8B: _push_long(4),
    ord("X"): _push_text(4),
    0x8C: _push_text(1),
    0x8D: _push_text(8),
    ord("U"): _push_old_text(1),
    ord("T"): _push_old_text(4),
    ord("C"): _push_bytes(1),
    ord("B"): _push_bytes(4),
    0x8E: _push_bytes(8),
    0x96: lambda m: m.stack.append(bytearray(m.take(m.number(8)))),
    ord("h"): _get(1),
    ord("j"): _get(4),
    ord("q"): _put(1),
    ord("r"): _put(4),
    0x94: _memoize,
    ord("t"): _tuple_of_mark,
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("a"): _append,
    ord("e"): _appends,
    ord("s"): _set_item,
    ord("u"): lambda m: m.set_items(m.pop_mark()),
    0x90: _add_items,
    0x91: _frozen_set,
    ord("c"): _global,
    0x93: _stack_global,
    ord("R"): WeightsUnpickler.reduce,
    0x81: WeightsUnpickler.new_object,
    0x92: lambda m: m.new_object(keywords=True),
    ord("b"): WeightsUnpickler.build,
    ord("Q"): WeightsUnpickler.persistent,
    0x80: _protocol,
    0x95: lambda m: m.take(8),  # FRAME: only a hint how much to read at once
}
