"""The parts of one row of the table ``op_db.py``, and short constructors of rows.

A row is independent of layouts, devices and pytest: it has the name of an op, the dtypes it takes, the reference in
NumPy and a set of samples. ``op_db_check.py`` makes tensors of samples and compares results,
``tests/python/test_op_db*.py`` generate the tests.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np


@dataclass(frozen=True)
class Dtype:
    """A dtype of the library: its name, its family letter and the NumPy dtype that holds its values exactly."""

    name: str
    family: str
    carrier: np.dtype
    bits: int  # significand bits with the hidden one; 0 for exact dtypes
    smallest: float = 0.0  # the smallest subnormal
    largest: float = 0.0

    def round(self, values: np.ndarray) -> np.ndarray:
        """Rounds values to the nearest ones of this dtype; returns them in the NumPy dtype."""
        with np.errstate(all="ignore"):
            return round_bfloat16(values) if self.name == "bfloat16" else np.asarray(values).astype(self.carrier)


def round_bfloat16(values: np.ndarray) -> np.ndarray:
    """Rounds to bfloat16 (nearest, ties to even) and returns float32; float64 input is rounded once, not twice."""
    wide = np.asarray(values, dtype=np.float64)
    mantissa, exponent = np.frexp(wide)
    step = np.ldexp(1.0, np.maximum(exponent - 8, -133))
    rounded = np.where(np.isfinite(wide), np.rint(wide / step) * step, wide)
    return np.where(np.abs(rounded) > 3.3895313892515355e38, np.copysign(np.inf, wide), rounded).astype(np.float32)


def _dtype(name: str, family: str, carrier: Any, bits: int = 0) -> Dtype:
    carrier = np.dtype(carrier)
    if name == "bfloat16":
        return Dtype(name, family, carrier, bits, 2.0**-133, 3.3895313892515355e38)
    if not bits:
        return Dtype(name, family, carrier, bits)
    info = np.finfo(carrier)
    return Dtype(name, family, carrier, bits, float(info.smallest_subnormal), float(info.max))


DTYPES: dict[str, Dtype] = {
    d.name: d
    for d in (
        _dtype("bool", "b", bool),
        _dtype("uint8", "u", np.uint8),
        _dtype("int8", "i", np.int8),
        _dtype("int16", "i", np.int16),
        _dtype("int32", "i", np.int32),
        _dtype("int64", "i", np.int64),
        _dtype("float16", "h", np.float16, 11),
        _dtype("bfloat16", "h", np.float32, 8),
        _dtype("float32", "f", np.float32, 24),
        _dtype("float64", "f", np.float64, 53),
        _dtype("complex64", "c", np.complex64, 24),
        _dtype("complex128", "c", np.complex128, 53),
    )
}
CATEGORY = {"b": 0, "u": 1, "i": 1, "h": 2, "f": 2, "c": 3}
REAL_OF = {"complex64": "float32", "complex128": "float64"}


def can_write(source: str, target: str) -> bool:
    """Returns whether values of one dtype may be written into a tensor of another (never down a category)."""
    return CATEGORY[DTYPES[source].family] <= CATEGORY[DTYPES[target].family]


#: The rules for the dtype of a result, by name; a row may also have a function from dtype name to dtype name.
RESULT_RULES: dict[str, Callable[[str], str]] = {
    "same": lambda d: d,
    "complex": lambda d: "complex128" if d in ("float64", "complex128") else "complex64",
    "float": lambda d: d if DTYPES[d].bits else "float32",
    "real": lambda d: REAL_OF.get(d, d),
    "bool": lambda d: "bool",
    "int64": lambda d: "int64",
    "int32": lambda d: "int32",
    "sum": lambda d: d if DTYPES[d].bits else "int64",
    "float64": lambda d: "float64",
    "widest": lambda d: "complex128" if DTYPES[d].family == "c" else "float64",
    "statistics": lambda d: "float32" if DTYPES[d].family == "h" else d,
    "real float": lambda d: REAL_OF.get(d, d) if DTYPES[d].bits else "float32",
    "arithmetic": lambda d: "int64" if d == "bool" else d,
    "truth": lambda d: "uint8" if d == "uint8" else "bool",
}


#: The modules below ``vesta`` whose names may be those of ops elsewhere (``linalg.norm``, ``norm``).
MODULES = ("linalg", "fft", "special")


def qualified(name: str, where: str) -> str:
    """Returns the name of an op in the table and in the registry: "linalg.qr", "exp"."""
    return f"{where}.{name}" if where in MODULES else name


@dataclass(frozen=True)
class Fixed:
    """An array that keeps its dtype whatever dtype is tested (indices, masks) and has no gradient."""

    array: np.ndarray


@dataclass(frozen=True)
class Constant:
    """An array of the tested dtype without a gradient (running statistics, class weights)."""

    array: np.ndarray


@dataclass(frozen=True)
class Sample:
    """One call: NumPy arrays represent tensors (also inside lists), everything else is passed as it is."""

    args: tuple
    kwargs: dict = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.args, self.kwargs))


def call(*args: Any, **kwargs: Any) -> Sample:
    """Makes a Sample, with the arguments of the call."""
    return Sample(args, kwargs)


class Maker:
    """A random generator, with its own seed, of arrays whose values the dtype under test represents exactly."""

    def __init__(self, dtype: Dtype, name: str) -> None:
        self.dtype = dtype
        self.rng = np.random.default_rng(zlib.crc32(f"{name}/{dtype.name}".encode()))

    def __call__(self, *shape: int, low: float = -3.0, high: float = 3.0, avoid: Iterable[float] = ()) -> np.ndarray:
        """Draws uniform values of [low, high] at a distance of at least 0.05 from each kink in ``avoid``."""
        if self.dtype.family == "b":
            return np.asarray(self.rng.integers(0, 2, shape), dtype=bool)
        if self.dtype.family in "ui":
            bottom = max(int(np.ceil(low)), np.iinfo(self.dtype.carrier).min)
            top = max(bottom, min(int(np.floor(high)), np.iinfo(self.dtype.carrier).max))
            return np.asarray(self.rng.integers(bottom, top + 1, shape), dtype=self.dtype.carrier)
        values = np.asarray(self.rng.uniform(low, high, shape))
        for kink in avoid:
            values = np.where(np.abs(values - kink) < 0.05, kink + np.copysign(0.1, values - kink), values)
        if self.dtype.family == "c":
            values = values + 1j * self.rng.uniform(-1.0, 1.0, shape)
        return self.dtype.round(values)

    def distinct(self, *shape: int) -> np.ndarray:
        """Draws a shuffled range scaled by 1/2: no two values are equal, so a maximum has only one position."""
        count = int(np.prod(shape))
        values = self.rng.permutation(count).reshape(shape)
        if self.dtype.family == "b":
            return np.asarray(values % 2 == 0)
        if self.dtype.family in "ui":
            return values.astype(self.dtype.carrier)
        return self.dtype.round((values - count // 2) * 0.5)

    def indices(self, *shape: int, low: int = 0, high: int) -> Fixed:
        """Draws int64 indices of [low, high)."""
        return Fixed(np.asarray(self.rng.integers(low, high, shape), dtype=np.int64))

    def mask(self, *shape: int) -> Fixed:
        """Draws a bool mask."""
        return Fixed(np.asarray(self.rng.integers(0, 2, shape), dtype=bool))


@dataclass(frozen=True)
class Bad:
    """A call that must raise ``error`` with ``fragment`` in its message; ``call`` gets the module ``vesta``."""

    call: Callable[[Any], Any]
    error: type[BaseException] | tuple[type[BaseException], ...]
    fragment: str = ""


@dataclass(frozen=True)
class Row:
    """One op: how it is called, what it accepts, its reference, and its variants.

    ``dtypes`` and ``may`` are strings of family letters (b bool, u uint8, i signed integers, h 16-bit floats, f
    float32/64, c complex): ``dtypes`` work, ``may`` either work or are refused, all others are refused. ``ref`` gets
    float64 for floats, complex128 for complex and integers as they are (float64 for the "float" rule). ``ulp`` is the
    allowed error of a result in units of its last place; with 0 the limit is ``norm`` epsilons of the largest magnitude
    (sums, products). ``bitwise`` promises equal bits in every layout; ``repeats`` says that repeated values are a valid
    sample (they are not if a variance divides).
    """

    name: str
    kind: str
    ref: Callable[..., Any] | None
    samples: Callable[[Maker], Iterable[Sample]]
    grad_samples: Callable[[Maker], Iterable[Sample]] | None = None
    dtypes: str = "buihfc"
    may: str = ""
    result: str | tuple[str, ...] = "same"
    where: str = ""
    fn: Callable[..., Any] | None = None
    grad: bool = True
    recorded: bool = False  # without grad: the op is recorded, and its backward refuses
    gradgrad: bool = True
    method: bool = True
    inplace: bool = False
    out: bool = False
    view: bool = False
    operator: str = ""
    ulp: float = 2.0
    ulp64: float = 0.0  # for float64, where SciPy's error counts as well; 0: ulp + 1.5
    norm: float = 32.0
    bitwise: bool = True
    repeats: bool = True
    extremes: bool = False
    cuda: bool = True  # there is a kernel for CUDA
    covers: tuple[str, ...] = ()

    @property
    def op_names(self) -> tuple[str, ...]:
        """The names in the op list that this row tests, as ``qualified`` writes them."""
        return self.covers or (qualified(self.name, self.where),)

    def accepts(self, dtype: str) -> bool:
        return DTYPES[dtype].family in self.dtypes

    def refuses(self, dtype: str) -> bool:
        return DTYPES[dtype].family not in self.dtypes + self.may

    def result_dtype(self, dtype: str, output: int = 0) -> str:
        """Returns the name of the dtype of the ``output``-th result; results past the last rule use the last rule."""
        rules = (self.result,) if isinstance(self.result, str) else self.result
        return RESULT_RULES[rules[min(output, len(rules) - 1)]](dtype)


#: Shapes of pointwise samples: 0-d, empty, one element, and counts that are no multiple of any vector width.
POINTWISE_SHAPES = ((), (0,), (1,), (7,), (17,), (33,), (1023,), (5, 3), (2, 0, 3), (3, 4, 5))
GRAD_SHAPES = ((), (0,), (1,), (3, 2))
BROADCASTS = (
    ((5, 3), (3,)),
    ((5, 1), (1, 3)),
    ((), (4,)),
    ((7,), ()),
    ((0,), (1,)),
    ((2, 0, 3), (1, 3)),
    ((2, 1, 3), (4, 1)),
)


def unary(
    name: str,
    ref: Callable[..., Any],
    domain: tuple[float, float] = (-3, 3),
    *,
    kinks: tuple = (),
    params: tuple[Sample, ...] = (Sample(()),),
    float_params: tuple[Sample, ...] = (),
    dtypes: str = "uihfc",
    result: Any = "float",
    **more: Any,
) -> Row:
    """Makes a row for a pointwise op of one tensor.

    ``params`` are further arguments, ``float_params`` those of float32 and float64 only; ``kinks`` have no slope.
    """

    def given(make: Maker) -> tuple[Sample, ...]:
        return params + (float_params if make.dtype.family == "f" else ())

    def samples(make: Maker) -> Iterator[Sample]:
        for shape in POINTWISE_SHAPES:
            for args, kwargs in given(make) if shape == (17,) else params[:1]:
                yield call(make(*shape, low=domain[0], high=domain[1]), *args, **kwargs)

    def grad_samples(make: Maker) -> Iterator[Sample]:
        for args, kwargs in given(make):
            for shape in GRAD_SHAPES:
                yield call(make(*shape, low=domain[0], high=domain[1], avoid=kinks), *args, **kwargs)

    defaults = {"inplace": True, "out": True, "extremes": True}
    return Row(name, "unary", ref, samples, grad_samples, dtypes=dtypes, result=result, **{**defaults, **more})


def binary(
    name: str,
    ref: Callable[..., Any],
    domain: tuple[float, float] = (-3, 3),
    other: tuple[float, float] | None = None,
    *,
    scalars: tuple = (2, 0.5),
    result: Any = "same",
    params: tuple[Sample, ...] = (),
    kinks: tuple = (),
    smooth: tuple | None = None,
    **more: Any,
) -> Row:
    """Makes a row for a pointwise op of two tensors (or a tensor and a Python number) with broadcasting.

    ``domain`` and ``other`` bound the operands, ``smooth`` is a (domain, other) without jumps for gradient samples.
    ``kinks`` are differences x - y at which there is no slope; the second operand of gradient samples avoids them.
    """
    bounds = (domain, other or domain)

    def draw(make: Maker, shapes: tuple, limits: tuple = bounds) -> tuple[np.ndarray, np.ndarray]:
        first, second = (make(*shape, low=low, high=high) for shape, (low, high) in zip(shapes, limits))
        return first, second

    def fitting(make: Maker) -> Iterator[Any]:
        for value in scalars:
            if make.dtype.bits or not isinstance(value, float):
                yield bool(value) if make.dtype.family == "b" else value

    def samples(make: Maker) -> Iterator[Sample]:
        for shapes in (*zip(POINTWISE_SHAPES, POINTWISE_SHAPES), *BROADCASTS):
            yield call(*draw(make, shapes))
        for args, kwargs in params:
            yield call(*draw(make, ((17,), (17,))), *args, **kwargs)
        for value in fitting(make):
            yield call(make(17, low=domain[0], high=domain[1]), value)

    def grad_samples(make: Maker) -> Iterator[Sample]:
        for shapes in (*zip(GRAD_SHAPES, GRAD_SHAPES), ((3, 1), (2,)), ((), (2,))):
            x, y = draw(make, shapes, smooth or bounds)
            for kink in kinks:
                close = np.any(np.abs(x - y - kink) < 0.05) if x.size and y.size else False
                y = make.dtype.round(y + 0.37) if close else y
            yield call(x, y)
        for args, kwargs in params:
            yield call(*draw(make, ((3,), (3,)), smooth or bounds), *args, **kwargs)
        for value in fitting(make):
            low, high = (smooth or bounds)[0]
            yield call(make(3, low=low, high=high, avoid=(value,) if kinks else ()), value)

    defaults = {"inplace": True, "out": True, "extremes": True}
    return Row(name, "binary", ref, samples, grad_samples, result=result, **{**defaults, **more})


def comparison(name: str, ref: Callable[..., Any], **more: Any) -> Row:
    """Makes a row for a pointwise op of two operands that returns bool and has no gradient."""
    return binary(name, ref, **{"result": "bool", "grad": False, "gradgrad": False, "scalars": (1, 0.5), **more})


def reduction(
    name: str,
    ref: Callable[..., Any],
    *,
    domain: tuple[float, float] = (-3, 3),
    empty: bool = True,
    distinct: bool = False,
    dims: bool = True,
    no_dim: bool = True,
    **more: Any,
) -> Row:
    """Makes a row for a reduction: over everything, one dim, several (``dims``), with and without keepdim.

    ``empty`` says that a reduction of no elements has a value; ``distinct`` draws samples without ties.
    """

    def draw(make: Maker, *shape: int) -> np.ndarray:
        return make.distinct(*shape) if distinct else make(*shape, low=domain[0], high=domain[1])

    def samples(make: Maker) -> Iterator[Sample]:
        for shape in ((1,), (7,), (33,), (100,), (5, 3), (3, 4, 5)) if no_dim else ():
            yield call(draw(make, *shape))
        yield call(draw(make, 5, 7), 0)
        yield call(draw(make, 3, 17, 2), 1, keepdim=True)
        yield call(draw(make, 3, 4, 5), -1)
        yield call(draw(make, 4, 33), 1)
        yield call(draw(make), 0)
        yield call(draw(make, 0, 3), 1)
        if empty:
            yield call(draw(make, 0))
            yield call(draw(make, 2, 0, 3), 1)
        if dims:
            yield call(draw(make, 3, 4, 5), (0, 2))
            yield call(draw(make, 3, 4, 5), (2, 1), keepdim=True)

    def grad_samples(make: Maker) -> Iterator[Sample]:
        if no_dim:
            yield call(draw(make))
            yield call(draw(make, 2, 3))
        yield call(draw(make, 3, 2), 0)
        yield call(draw(make, 3, 2), -1, keepdim=True)
        if dims:
            yield call(draw(make, 2, 3, 2), (0, 2))

    defaults = {"ulp": 0.0, "bitwise": False}
    return Row(name, "reduction", ref, samples, grad_samples, **{**defaults, **more})


def structured(name: str, ref: Callable[..., Any], samples: Callable[[Maker], Iterable[Sample]], **more: Any) -> Row:
    """Makes a row for an op that is neither pointwise nor a reduction: products, convolutions, indexing, losses."""
    return Row(name, "structured", ref, samples, more.pop("grad_samples", samples), **more)


def view(name: str, ref: Callable[..., Any], samples: Callable[[Maker], Iterable[Sample]], **more: Any) -> Row:
    """Makes a row for an op whose results alias its input, for every dtype."""
    defaults = {"view": True, "ulp": 0.0}
    return Row(name, "view", ref, samples, more.pop("grad_samples", samples), **{**defaults, **more})


def factory(name: str, ref: Callable[..., Any], samples: Callable[[Maker], Iterable[Sample]], **more: Any) -> Row:
    """Makes a row for a factory of tensors from sizes and numbers; each sample also gets ``dtype=`` and ``device=``."""
    return Row(name, "factory", ref, samples, **{"grad": False, "gradgrad": False, "method": False, **more})


def random(name: str, samples: Callable[[Maker], Iterable[Sample]], **more: Any) -> Row:
    """Makes a row for a random op; it has no reference: ``test_op_db_factories.py`` tests its distribution."""
    return Row(name, "random", None, samples, **{"grad": False, "gradgrad": False, "method": False, **more})
