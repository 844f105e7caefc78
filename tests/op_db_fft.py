"""Rows of the table of ops for Fourier transforms; references are SciPy's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import numpy as np
import op_db_samples as s
from op_db_row import Maker, Row, Sample, call, factory, structured
from scipy import fft

Samples = Callable[[Maker], Iterator[Sample]]


def one(name: str) -> Callable[..., np.ndarray]:
    """Makes the reference of a transform along one dimension."""
    return lambda x, n=None, dim=-1, norm=None: getattr(fft, name)(x, n, dim, norm)


def many(name: str, dims: Any) -> Callable[..., np.ndarray]:
    """Makes the reference of a transform over several dimensions; ``dims``: those without ``dim``."""

    def reference(x: np.ndarray, s: Any = None, dim: Any = dims, norm: Any = None) -> np.ndarray:
        if dim is None:
            dim = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
        return getattr(fft, name + "n")(x, s, dim, norm)

    return reference


def lines(make: Maker) -> Iterator[Sample]:
    for shape in ((6,), (3, 5), (2, 3, 4)):
        yield call(make(*shape))
    yield call(make(4, 6), 5)
    yield call(make(4, 6), n=9, norm="ortho")
    yield call(make(4, 6), dim=0, norm="forward")
    yield call(make(3, 134), norm="backward")


def lines_grad(make: Maker) -> Iterator[Sample]:
    yield call(make(2, 4))
    yield call(make(2, 3), 5, norm="ortho")
    yield call(make(4, 2), n=3, dim=0, norm="forward")


def planes(make: Maker) -> Iterator[Sample]:
    yield call(make(4, 6))
    yield call(make(2, 3, 5))
    yield call(make(4, 6), norm="ortho")
    yield call(make(4, 6), s=(5, 4), norm="forward")
    yield call(make(3, 4, 5), dim=(2, 0))
    yield call(make(3, 4, 5), s=(4, 6), dim=(0, 1), norm="backward")


def planes_grad(make: Maker) -> Iterator[Sample]:
    yield call(make(2, 3))
    yield call(make(3, 3), s=(2, 4), norm="ortho")


def volumes(make: Maker) -> Iterator[Sample]:
    yield from planes(make)
    yield call(make(2, 3, 2, 4))
    yield call(make(3, 4, 5), s=(4, 6))


def transforms() -> Iterator[Row]:
    for name, dtypes, result in (
        ("fft", "fc", "complex"),
        ("ifft", "fc", "complex"),
        ("rfft", "f", "complex"),
        ("irfft", "fc", "real"),
        ("hfft", "fc", "real"),
        ("ihfft", "f", "complex"),
    ):
        more: dict[str, Any] = {"dtypes": dtypes, "may": "bui", "result": result, "where": "fft", "method": False}
        more |= {"out": True, "ulp": 0, "bitwise": False}
        yield structured(name, one(name), lines, grad_samples=lines_grad, covers=(f"fft.{name}",), **more)
        if name != "rfft":
            plane = many(name, (-2, -1))
            yield structured(name + "2", plane, planes, grad_samples=planes_grad, covers=(f"fft.{name}2",), **more)
        volume = many(name, None)
        yield structured(name + "n", volume, volumes, grad_samples=planes_grad, covers=(f"fft.{name}n",), **more)


SHIFTED = s.shapes(((5,),), ((4, 3),), ((4, 3), 1), ((2, 3, 4), (0, 2)))
OPS: tuple[Row, ...] = (
    *transforms(),
    structured(
        "fftshift",
        lambda x, dim=None: fft.fftshift(x, dim),
        SHIFTED,
        where="fft",
        method=False,
        ulp=0.5,
        covers=("fft.fftshift",),
    ),
    structured(
        "ifftshift",
        lambda x, dim=None: fft.ifftshift(x, dim),
        SHIFTED,
        where="fft",
        method=False,
        ulp=0.5,
        covers=("fft.ifftshift",),
    ),
    factory(
        "fftfreq",
        fft.fftfreq,
        s.numbers(call(5), call(8, 0.5), call(1)),
        dtypes="hf",
        may="c",
        where="fft",
        covers=("fft.fftfreq",),
    ),
    factory(
        "rfftfreq",
        fft.rfftfreq,
        s.numbers(call(5), call(8, 0.5), call(1)),
        dtypes="hf",
        may="c",
        where="fft",
        covers=("fft.rfftfreq",),
    ),
)
