"""Calls of everything public, with arguments that are wrong in some way; each is made from its number alone.

A call begins as a right one (a sample of ``op_db.py``, a line of ``public_calls.py``) or as any public function, method
or class with arguments from a pool. Then one to three things are changed: an argument is replaced by another, dropped,
doubled, or put among others where a list was.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import op_db_check as check
import public_calls
import vesta
from op_db import OPS
from op_db_row import DTYPES, Maker, Row, Sample

from .complaints import Hostile

#: Modules whose public functions and classes are called.
MODULES = (
    "vesta", "vesta.nn", "vesta.nn.functional", "vesta.nn.init", "vesta.nn.utils", "vesta.optim",
    "vesta.optim.lr_scheduler", "vesta.autograd", "vesta.autograd.graph", "vesta.linalg", "vesta.fft", "vesta.amp",
    "vesta.utils.data", "vesta.storage", "vesta.futures", "vesta.signal.windows", "vesta.special", "vesta.sparse",
    "vesta.nn.utils.rnn", "vesta.nn.utils.parametrize", "vesta.nn.utils.prune", "vesta.utils.checkpoint",
    "vesta.utils.dlpack", "vesta.quasirandom", "vesta.autograd.functional", "vesta.distributions",
)  # fmt: skip
#: What changes the process, starts others, waits for somebody, leaves a mark on what comes after, or asks for PyTorch.
LEFT_OUT = frozenset(
    """set_num_threads set_default_dtype set_default_device set_default_tensor_type manual_seed seed set_rng_state
    set_printoptions use_deterministic_algorithms set_detect_anomaly set_grad_enabled inference_mode detect_anomaly
    set_num_interop_threads set_flush_denormal set_multithreading_enabled share_memory_ get_worker_info fork save load
    _share_memory increment_version compile is_inference_mode_enabled enable_grad no_grad Future collect_all wait
    set_warn_always set_float32_matmul_precision to_torch""".split()
)
#: Classes whose objects are no plain values: their methods are called as functions with the object first.
CLASSES = ("Tensor", "Generator", "Size", "dtype", "device")


#: Methods that Python calls itself, and methods whose errors are Python's own.
OF_PYTHON = frozenset(
    """__init__ __reduce__ __reduce_ex__ __dir__ __sizeof__ __getattribute__ __delattr__ __setattr__ __copy__
    __format__""".split()
)


class Raises:
    """Raises when it is used in any way."""

    def __raise(self, *_: Any) -> Any:
        raise Hostile("used")

    __index__ = __int__ = __float__ = __bool__ = __len__ = __iter__ = __getitem__ = __call__ = __eq__ = __raise
    __hash__ = None  # type: ignore[assignment]


class Lies:
    """Has a length but not the items, and an index that is no int."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> Any:
        return self

    def __index__(self) -> Any:
        return 2**70

    def __iter__(self) -> Any:
        return iter((1, None))


class Text(str):
    """A string of another class."""


class Number(int):
    """A number of another class."""


class Mine(vesta.Tensor):
    """A tensor of another class."""


def careless(*_: Any, **__: Any) -> Any:
    raise Hostile("called")


def cyclic() -> list:
    made: list = [1]
    made.append(made)
    return made


def inference() -> Any:
    with vesta.inference_mode():
        return vesta.ones(2, 3)


def shared() -> Any:
    return vesta.arange(3.0).expand(2, 3)


def of_shape(*shape: int, dtype: str = "float32", grad: bool = False) -> Callable[[], Any]:
    return lambda: vesta.ones(shape, dtype=getattr(vesta, dtype), requires_grad=grad)


#: What an argument is replaced by; functions make it anew.
POOL: list[Callable[[], Any]] = [
    *(lambda v=v: v for v in (
        None, True, False, 0, 1, -1, 2, 3, 7, -7, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63), 2**63, 10**30, 0.0, -0.0,
        0.5, -1.5, 1e-320, 1e308, 1e39, float("nan"), float("inf"), -float("inf"), 1j, complex("nan"), "", "text",
        "mean", "sum", "none", "\ud800", "a\0b", "é" * 1000, b"bytes", int, object, (), (0,), (1,), (-1,), (2, 3),
        (2**62, 2**62), (0, 2**40), (1, 2, 3, 4, 5, 6, 7, 8, 9), (1,) * 70, (None,), ("a",), (1.5, 2), ((1, 2), 3),
        range(3), slice(None), slice(1, None, -1), slice(2**70), ..., NotImplemented, frozenset((1,)),
        vesta.float32, vesta.int64, vesta.bool, vesta.complex64, vesta.float16, vesta.device("cpu"), "cpu", "cuda:99",
        "meta", vesta.strided, vesta.channels_last, vesta.contiguous_format, Text("mean"), Number(1),
    )),
    lambda: careless, object, dict, list, Raises, Lies, cyclic, inference, shared, lambda: [1, 2], lambda: [-1, 0],
    lambda: [2**40], lambda: [None, 1], lambda: [1.5, "a"], lambda: {"a": 1}, lambda: {1, 2}, lambda: iter((1, 2)),
    lambda: [[1], [1, 2]],
    lambda: np.ones(3), lambda: np.float32(2), lambda: np.int64(1), lambda: np.array("a"), lambda: lambda *a: None,
    lambda: Exception("e"), lambda: vesta.Generator(), lambda: [vesta.ones(2), None], lambda: [vesta.ones(2)] * 3,
    lambda: (vesta.ones(2, 3), vesta.ones(2)), lambda: [vesta.ones(2, requires_grad=True)],
    of_shape(), of_shape(0), of_shape(1), of_shape(3), of_shape(2, 3), of_shape(3, 2), of_shape(2, 0, 3),
    of_shape(1, 1, 1, 1, 1, 1, 1), of_shape(2, 3, grad=True), of_shape(grad=True), of_shape(3, dtype="int64"),
    of_shape(dtype="int64"), of_shape(2, 3, dtype="bool"), of_shape(2, 2, dtype="complex64"),
    of_shape(3, dtype="uint8"), of_shape(2, 3, dtype="float16"), of_shape(4, dtype="bfloat16"),
    of_shape(2, 3, dtype="float64"),
    lambda: vesta.full((3,), -1), lambda: vesta.full((2, 3), 10**9), lambda: vesta.full((3,), float("nan")),
    lambda: vesta.ones(3, 2).t(), lambda: vesta.ones(6)[::2], lambda: vesta.ones(2, 3).as_subclass(Mine),
    lambda: vesta.nn.Parameter(vesta.ones(2, 3)), lambda: vesta.nn.Linear(3, 2),
    lambda: vesta.ones(2, requires_grad=True) * 2, lambda: vesta.tensor(-5), lambda: vesta.tensor(10**15),
]  # fmt: skip

#: Where the arguments of an op are tensors, these dtypes are tried.
DRAWN = ("float32", "float32", "float64", "int64", "complex64", "bool", "float16", "uint8")


@dataclass
class Call:
    """One call, ready to run; ``pure`` says that a call that raises must leave its arguments as they were."""

    name: str
    function: Callable[..., Any]
    args: tuple
    kwargs: dict[str, Any]
    pure: bool

    def __str__(self) -> str:
        said = [described(value) for value in self.args] + [f"{k}={described(v)}" for k, v in self.kwargs.items()]
        return f"{self.name}({', '.join(said)})"


def described(value: Any) -> str:
    """Writes an argument shortly; tensors as dtype and shape."""
    if isinstance(value, vesta.Tensor):
        grad = ", requires_grad" if value.requires_grad else ""
        return f"<{str(value.dtype).rsplit('.', 1)[-1]} {tuple(value.shape)} {tuple(value.stride())}{grad}>"
    if type(value) in (list, tuple) and len(value) < 20 and not any(item is value for item in value):
        inside = ", ".join(described(item) for item in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside},)"
    if isinstance(value, (Raises, Lies, cyclic.__class__)):
        return f"<{getattr(value, '__name__', type(value).__name__)}>"
    return repr(value)[:80]


def public(holder: Any) -> Iterator[str]:
    """Yields the names of public callables."""
    for name in dir(holder):
        if name.startswith("_") and not (name.startswith("__") and name.endswith("__")):
            continue
        if name in LEFT_OUT or name in ("__class__", "__init_subclass__", "__subclasshook__", "__new__"):
            continue
        if callable(getattr(holder, name, None)):
            yield name


class Caller:
    """Makes calls by number."""

    def __init__(self) -> None:
        self.rows = [row for row in OPS if row.fn is None and row.name not in LEFT_OUT]
        self.samples: dict[tuple[int, str], list[Sample]] = {}
        self.public = [call for call in public_calls.ALL if call.name not in LEFT_OUT]
        self.names = list(self.everything())

    @staticmethod
    def everything() -> Iterator[tuple[str, Callable[..., Any], bool]]:
        """Yields every public function, class and method with its name, and whether it takes an object first."""
        seen: dict[int, object] = {}  # keeps the values: an identity counts while its value lives
        for module in MODULES:
            try:
                holder = importlib.import_module(module)
            except ImportError:
                continue
            for name in public(holder):
                value = getattr(holder, name)
                home = str(getattr(value, "__module__", "") or "vesta")
                if "autocast" in name:  # a mode that was left on keeps the casts of weights
                    continue
                ours = home.startswith("vesta") and home != "vesta._arguments" and "__" not in name
                if ours and id(value) not in seen:
                    seen[id(value)] = value
                    yield f"{module[6:] + '.' if module[6:] else ''}{name}", value, False
        for name in CLASSES:
            holder = getattr(vesta, name)
            for method in public(holder):
                if method in OF_PYTHON:
                    continue
                yield f"{name}.{method}", getattr(holder, method), name == "Tensor"

    def samples_of(self, index: int, dtype: str) -> list[Sample]:
        """Returns the samples of a row, the small ones."""
        key = (index, dtype)
        if key not in self.samples:
            row = self.rows[index]
            found = list(row.samples(Maker(DTYPES[dtype], row.name))) if row.accepts(dtype) else []
            self.samples[key] = [sample for sample in found if size_of(sample) <= 2000][:12]
        return self.samples[key]

    def make(self, number: int) -> Call:
        """Makes the call of a number."""
        dice = random.Random(number * 2654435761 % 2**61)
        kind = dice.random()
        if kind < 0.55:
            call = self.of_row(dice)
        elif kind < 0.65:
            chosen = dice.choice(self.public)
            kwargs = {k: made(v) for k, v in chosen.kwargs.items()}
            call = Call(chosen.name, chosen.function, tuple(made(v) for v in chosen.args), kwargs, False)
        else:
            name, function, first = dice.choice(self.names)
            args = [dice.choice(POOL)() for _ in range(dice.choice((0, 1, 1, 1, 2, 2, 3, 4)))]
            if first:
                args = [dice.choice(POOL[-26:])(), *args]
            return Call(name, function, tuple(args), {}, False)
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            change(dice, call)
        return call

    def of_row(self, dice: random.Random) -> Call:
        for _ in range(20):
            index = dice.randrange(len(self.rows))
            dtype = dice.choice(DRAWN)
            if samples := self.samples_of(index, dtype):
                break
        else:
            return Call("zeros", vesta.zeros, (2,), {}, True)
        row = self.rows[index]
        layout = dice.choice((check.layout_contiguous, *check.LAYOUTS.values()))
        grad = dtype in ("float32", "float64", "complex64") and row.grad and dice.random() < 0.3
        args, kwargs = check.materialize(dice.choice(samples), dtype, "cpu", layout, grad)
        function = getattr(vesta.Tensor, row.name) if row.where == "Tensor" else check.function_of(row)
        return Call(full_name(row), function, tuple(args), dict(kwargs), True)


def full_name(row: Row) -> str:
    return f"{row.where}.{row.name}" if row.where else row.name


def size_of(sample: Sample) -> int:
    sizes: list[int] = []
    note = lambda array: sizes.append(array.size)
    check.map_arrays([sample.args, sample.kwargs], note, note, note)
    return sum(sizes)


def made(value: Any) -> Any:
    """Makes an argument that is given as a function of public_calls.py."""
    return value() if callable(value) and getattr(value, "__module__", "") == public_calls.__name__ else value


#: Names that an op may or may not have.
KEYWORDS = ("dim", "out", "dtype", "keepdim", "input", "other", "alpha", "device", "generator", "reduction", "size")


def change(dice: random.Random, call: Call) -> None:
    """Makes one thing wrong."""
    args, kind = list(call.args), dice.random()
    other = dice.choice(POOL)()
    if kind < 0.62 and args:
        args[dice.randrange(len(args))] = other
    elif kind < 0.72 and call.kwargs:
        call.kwargs[dice.choice(list(call.kwargs))] = other
    elif kind < 0.8:
        args.insert(dice.randint(0, len(args)), other)
    elif kind < 0.88:
        call.kwargs[dice.choice(KEYWORDS)] = other
    elif kind < 0.92 and args:
        del args[dice.randrange(len(args))]
    elif kind < 0.96 and args:
        dice.shuffle(args)
    elif args:
        i = dice.randrange(len(args))
        inside = list(args[i]) if isinstance(args[i], (list, tuple)) else [args[i]]
        inside.insert(dice.randint(0, len(inside)), other)
        args[i] = inside
    call.args = tuple(args)
