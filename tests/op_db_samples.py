"""Sample generators of the rows that are neither pointwise nor plain reductions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Callable

import numpy as np
from op_db_row import Constant, Fixed, Maker, Sample, call
from op_db_samples_linalg import (  # noqa: F401 (one name for all samples)
    apart,
    cholesky_factor,
    cholesky_solve,
    positive_definite,
    powers,
    powers_grad,
    qr,
    qr_grad,
    rectangles,
    reflections,
    reflectors,
    regular,
    solve,
    solve_triangular,
    squares,
    systems,
    systems_last,
    tall,
    triangular_solve,
)

Samples = Callable[[Maker], Iterable[Sample]]


def shapes(*cases: tuple) -> Samples:
    """Makes samples of one tensor: each case is a shape followed by the call's further arguments."""
    return lambda make: (call(make(*shape), *rest) for shape, *rest in cases)


def products(*cases: tuple) -> Samples:
    """Makes samples of several tensors: each case is a tuple of shapes; values of [-1, 1] keep sums small."""
    return lambda make: (call(*(make(*shape, low=-1, high=1) for shape in case)) for case in cases)


# ---- pointwise ops of several tensors --------------------------------------------------------------------------


def lerp(make: Maker) -> Iterator[Sample]:
    for shape in ((), (7,), (33,), (3, 5)):
        yield call(make(*shape), make(*shape), make(*shape, low=0, high=1))
    yield call(make(3, 5), make(3, 5), 0.25)
    yield call(make(17), make(17), 0.75)
    yield call(make(3, 5), make(5), make(3, 1, low=-1, high=2))


def addcmul(make: Maker) -> Iterator[Sample]:
    for shape in ((), (7,), (33,), (3, 5)):
        yield call(make(*shape), make(*shape), make(*shape))
    yield call(make(3, 5), make(5), make(3, 1), value=2)


def addcdiv(make: Maker) -> Iterator[Sample]:
    for shape in ((), (7,), (33,), (3, 5)):
        yield call(make(*shape), make(*shape), make(*shape, low=0.5))
    yield call(make(3, 5), make(5), make(3, 1, low=0.5), value=0.5)


def prelu(make: Maker) -> Iterator[Sample]:
    for shape, weights in (((7,), (1,)), ((7,), ()), ((2, 3), (3,)), ((2, 3, 4), (3,)), ((), (1,)), ((0, 3), (3,))):
        yield call(make(*shape, avoid=(0,)), make(*weights))


def away_from_zero(*params: Sample) -> Samples:
    """Makes samples of one tensor whose values keep a distance from 0, with each of the further arguments."""
    return lambda make: (call(make(*shape, avoid=(0,)), *args) for shape in ((), (7,), (3, 4)) for args, _ in params)


def isin(make: Maker) -> Iterator[Sample]:
    for shape, tests in (((7,), (3,)), ((), (2,)), ((3, 5), (2, 2)), ((40,), (90,)), ((0,), (2,)), ((5,), (0,))):
        yield call(make(*shape), make(*tests))
    yield call(make(3, 5), make(4), invert=True)
    x = make(60)
    yield call(x, np.concatenate([x[::2], make(40)]), assume_unique=False)


def distances(*params: Sample) -> Samples:
    """Makes two tensors of one shape, and two that broadcast, with each of the further arguments."""
    return lambda make: (
        call(make(*a, low=1, high=3), make(*b, low=-3, high=-1), *args)
        for a, b in (((5,), (5,)), ((2, 3), (2, 3)), ((3, 1, 2), (4, 2)))
        for args, _ in params
    )


def cdist(make: Maker) -> Iterator[Sample]:
    for a, b in (((3, 2), (4, 2)), ((2, 3, 2), (1, 5, 2)), ((0, 2), (3, 2)), ((30, 2), (3, 2))):
        yield call(make(*a, low=1, high=3), make(*b, low=-3, high=-1))
    yield call(make(3, 2, low=1, high=3), make(4, 2, low=-3, high=-1), p=1.0)
    yield call(make(3, 2, low=1, high=3), make(4, 2, low=-3, high=-1), p=3.0)
    yield call(make(30, 2, low=1, high=3), make(3, 2, low=-3, high=-1), compute_mode="donot_use_mm_for_euclid_dist")


def crosses(dim: int | None) -> Samples:
    """Makes pairs of tensors with vectors of three; ``dim`` tells what stands for the default."""

    def samples(make: Maker) -> Iterator[Sample]:
        yield call(make(3), make(3))
        yield call(make(2, 3), make(2, 3))
        if dim is None:
            yield call(make(3, 2), make(3, 2))
            yield call(make(2, 3, 4), make(2, 3, 4), 1)
        else:
            yield call(make(4, 1, 3), make(1, 2, 3))
            yield call(make(3, 2), make(3, 2), dim=0)

    return samples


def vander(make: Maker) -> Iterator[Sample]:
    for shape in ((3,), (2, 3)):
        yield call(make(*shape))
        yield call(make(*shape), N=4)


def covariances(*params: Sample) -> Samples:
    """Makes variables in rows, more observations than variables, with each of the further arguments."""
    return lambda make: (call(make(*shape), **kwargs) for shape in ((5,), (2, 7), (3, 20)) for _, kwargs in params)


# ---- counts, integrals, searches --------------------------------------------------------------------------------


def with_zeros(make: Maker) -> Iterator[Sample]:
    """Makes lines with no zero, with one and with two."""
    for zeros in ((), (1,), (0, 2), (3,)):
        x = make(4, low=0.5, high=2)
        x[list(zeros)] = 0
        yield call(x, 0)
    yield call(make(2, 3, low=0.5, high=2), -1)
    yield call(make(), 0)


def histc(make: Maker) -> Iterator[Sample]:
    for shape in ((7,), (3, 5), (33,), ()):
        yield call(make(*shape), 5, -2, 2)
    yield call(make(17), 10, 0, 1.5)
    yield call(make(40), bins=4)
    yield call(np.array([1.0, 1.0]).astype(make.dtype.carrier), bins=3)


def bincount(make: Maker) -> Iterator[Sample]:
    for n in (0, 1, 7, 40):
        yield call(make(n, low=0, high=9))
    yield call(make(9, low=0, high=4), minlength=12)


def trapezoid(make: Maker) -> Iterator[Sample]:
    for shape in ((5,), (2, 4), (3, 1)):
        yield call(make(*shape))
    yield call(make(3, 4), dx=2, dim=0)
    yield call(make(3, 4), make(4))
    yield call(make(3, 4), make(3), dim=0)
    yield call(make(3, 4), make(3, 4))


def with_nan_lines(make: Maker) -> Iterator[Sample]:
    for shape, rest in (((7,), ()), ((5, 4), (0,)), ((3, 5), (1, True)), ((2, 3, 4), (-2,))):
        x = make.distinct(*shape)
        if make.dtype.bits:
            x.reshape(-1)[::3] = np.nan
        yield call(x, *rest)


def mode(make: Maker) -> Iterator[Sample]:
    for shape, rest in (((7,), ()), ((5, 4), (0,)), ((3, 9), (1, True)), ((2, 3, 4), (-2,)), ((1,), ())):
        whole = make(*shape, low=0, high=3)
        yield call(np.floor(whole).astype(whole.dtype) if make.dtype.bits else whole, *rest)


def mode_distinct(make: Maker) -> Iterator[Sample]:
    for shape, rest in (((4,), ()), ((2, 3), (0,)), ((2, 3), (1, True))):
        yield call(make.distinct(*shape), *rest)


def searchsorted(make: Maker) -> Iterator[Sample]:
    line = np.sort(make(9))
    for shape in ((), (7,), (2, 3), (0,)):
        yield call(line, make(*shape))
    yield call(line, line, right=True)
    yield call(line, line, side="right")
    yield call(np.sort(make(2, 5), axis=-1), make(2, 3))
    yield call(make(0), make(3))
    unsorted = make.distinct(6)
    yield call(unsorted, make(4), sorter=Fixed(np.argsort(unsorted, kind="stable")))


def bucketize(make: Maker) -> Iterator[Sample]:
    line = np.sort(make(9))
    for shape in ((), (7,), (2, 3), (0,)):
        yield call(make(*shape), line)
    yield call(line, line, right=True)


def places_by_rank(make: Maker) -> Iterator[Sample]:
    for shape, first, count, dim in (((7,), 0, 3, 0), ((5, 4), 2, 1, 0), ((3, 300), 7, 20, 1), ((3, 300), 150, 1, -1)):
        for largest in (True, False):
            yield call(make(*shape), first, count, dim, largest)
    yield call(make(5), 0, 5, 0, False)
    yield call(make(5), 0, 1, 0, True)


# ---- selection --------------------------------------------------------------------------------------------------


def close(make: Maker) -> Iterator[Sample]:
    """Makes pairs that are equal, nearly equal and far apart, infinite and NaN."""
    for shape in ((), (7,), (3, 5)):
        x = make(*shape)
        yield call(x, x)
        yield call(x, make(*shape))
        yield call(x, make.dtype.round(x + 1e-7) if make.dtype.family in "fc" else x)
    yield call(make(3, 5), make(5), rtol=0.5, atol=0.25)
    if make.dtype.family == "f":
        odd = np.array([np.inf, -np.inf, np.nan, 1.0, np.inf])
        yield call(odd, np.array([np.inf, np.inf, np.nan, np.inf, 1.0]))
        yield call(odd, odd, equal_nan=True)


def clamp_tensors(make: Maker) -> Iterator[Sample]:
    for shape in ((), (7,), (17,), (3, 5)):
        yield call(make(*shape), make(*shape, low=-2, high=-1), make(*shape, low=1, high=2))
    yield call(make(3, 5), make(5, low=-2, high=-1), make(3, 1, low=1, high=2))


def clamp_tensors_grad(make: Maker) -> Iterator[Sample]:
    yield call(make(7, avoid=(-1.5, 1.5)), make.dtype.round(np.full(7, -1.5)), make.dtype.round(np.full(7, 1.5)))
    yield call(make(2, 3, avoid=(-1.5, 1.5)), make.dtype.round(np.full(3, -1.5)), make.dtype.round(np.full((), 1.5)))


def where(make: Maker) -> Iterator[Sample]:
    for shape in ((), (0,), (1,), (7,), (33,), (3, 5)):
        yield call(make.mask(*shape), make(*shape), make(*shape))
    yield call(make.mask(3, 1), make(4), make())
    yield call(make.mask(1), make(2, 3), make(3))


def masked_fill(make: Maker) -> Iterator[Sample]:
    for shape in ((), (0,), (7,), (3, 5)):
        yield call(make(*shape), make.mask(*shape), 1)
    yield call(make(3, 5), make.mask(5), make())
    yield call(make(2, 3), make.mask(2, 1), 0)


def masked_select(make: Maker) -> Iterator[Sample]:
    for shape in ((0,), (7,), (3, 5)):
        yield call(make(*shape), make.mask(*shape))
    yield call(make(3, 5), make.mask(5))
    yield call(make(4), Fixed(np.zeros(4, dtype=bool)))


# ---- lines ------------------------------------------------------------------------------------------------------


LINES = (((), 0), ((0,), 0), ((7,), 0), ((5, 3), 0), ((5, 3), -1), ((2, 3, 4), 1), ((3, 300), 1), ((2, 0, 3), 1))
SHORT_LINES = (((), 0), ((4,), 0), ((2, 3), -1), ((2, 3, 2), 1))


def lines(make: Maker) -> Iterator[Sample]:
    for shape, dim in (*LINES, ((300, 5), 0)):
        yield call(make(*shape), dim)


def distinct_lines(make: Maker) -> Iterator[Sample]:
    for shape, dim in SHORT_LINES:
        yield call(make.distinct(*shape), dim)


def sort(make: Maker) -> Iterator[Sample]:
    for shape, dim in LINES:
        yield call(make(*shape), dim)
        yield call(make(*shape), dim, True)
    yield call(make(33, 5))
    yield call(make(300, 2), stable=True, dim=0, descending=True)
    yield call(make(40), stable=False)


def sort_distinct(make: Maker) -> Iterator[Sample]:
    for shape, dim in SHORT_LINES:
        yield call(make.distinct(*shape), dim)
        yield call(make.distinct(*shape), dim, descending=True)


# ---- indexing ---------------------------------------------------------------------------------------------------


def getitem(make: Maker) -> Iterator[Sample]:
    yield call(make(7), (make.indices(5, low=-7, high=7),))
    yield call(make(5, 4), (make.indices(3, high=5), make.indices(3, high=4)))
    yield call(make(5, 4), (make.indices(2, 3, high=5),))
    yield call(make(5, 4, 3), (slice(None), make.indices(6, high=4)))
    yield call(make(5, 4, 3), (make.indices(2, 1, high=5), slice(1, 3), make.indices(1, 2, high=3)))
    yield call(make(5, 4), (make.mask(5, 4),))
    yield call(make(5, 4), (make.mask(5),))
    yield call(make(3, 4), (None, make.indices(2, high=3), Ellipsis))
    yield call(make(3), (make.indices(0, high=3),))


def index_put(make: Maker) -> Iterator[Sample]:
    for accumulate in (False, True):
        yield call(make(7), (Fixed(np.array([6, 0, -4])),), make(3), accumulate)
        yield call(make(5, 4), (Fixed(np.array([4, 1])), Fixed(np.array([0, 3]))), make(), accumulate)
        yield call(make(5, 3), (Fixed(np.array([3, 0])),), make(2, 3), accumulate)
        yield call(make(4, 3), (Fixed(np.array([True, False, True, True])),), make(3), accumulate)
    yield call(make(4), (Fixed(np.array([2, 2, 0, 2])),), make(4), True)


def index_select(make: Maker) -> Iterator[Sample]:
    yield call(make(7), 0, make.indices(5, high=7))
    yield call(make(5, 3), 0, make.indices(4, high=5))
    yield call(make(5, 3), -1, make.indices(4, high=3))
    yield call(make(2, 3, 4), 1, make.indices(0, high=3))


def index_add(make: Maker) -> Iterator[Sample]:
    yield call(make(7), 0, make.indices(5, high=7), make(5))
    yield call(make(5, 3), 0, Fixed(np.array([1, 1, 4])), make(3, 3))
    yield call(make(2, 3), 1, Fixed(np.array([2, 0])), make(2, 2), alpha=1 if make.dtype.family == "b" else 2)


def index_fill(make: Maker) -> Iterator[Sample]:
    yield call(make(7), 0, make.indices(4, low=-7, high=7), 1)
    yield call(make(5, 3), 1, Fixed(np.array([2, 0, 2])), make())
    yield call(make(5, 3), -2, Fixed(np.array(3)), make())
    yield call(make(2, 3, 4), 1, Fixed(np.array([-1, 1], dtype=np.int64)), 0)
    yield call(make(2, 3, 4), 1, make.indices(0, high=3), 1)
    yield call(make(), 0, Fixed(np.array([0, -1])), make())
    yield call(make(0, 3), 1, Fixed(np.array([1])), 1)


def gather(make: Maker) -> Iterator[Sample]:
    yield call(make(7), 0, make.indices(9, high=7))
    yield call(make(5, 3), 0, make.indices(2, 3, high=5))
    yield call(make(5, 3), 1, make.indices(5, 4, high=3))
    yield call(make(4, 3), -1, make.indices(2, 1, high=3))


def scatter_add(make: Maker) -> Iterator[Sample]:
    yield call(make(7), 0, make.indices(9, high=7), make(9))
    yield call(make(5, 3), 0, make.indices(2, 3, high=5), make(2, 3))
    yield call(make(5, 3), 1, make.indices(4, 2, high=3), make(4, 2))


def scatter(make: Maker) -> Iterator[Sample]:
    distinct = Fixed(np.array([[4, 0, 2], [1, 3, 0]]))
    yield call(make(7), 0, Fixed(np.array([6, 0, 3])), make(3))
    yield call(make(5, 3), 0, distinct, make(2, 3))
    yield call(make(5, 3), 0, distinct, make(4, 5))
    yield call(make(4, 3), 1, Fixed(np.array([[2], [0]])), 1)
    yield call(make(4, 3), -1, Fixed(np.array([[2, 1], [0, 2]])), make(2, 2))


def scatter_reduce(make: Maker) -> Iterator[Sample]:
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include_self in (True, False):
            yield call(make(5, 3), 0, make.indices(4, 3, high=5), make(4, 3), reduce, include_self=include_self)
        yield call(make(3), 0, make.indices(9, high=3), make(9), reduce)
        yield call(make(4, 3), -1, make.indices(2, 2, high=3), make(3, 4), reduce)


def scatter_reduce_distinct(make: Maker) -> Iterator[Sample]:
    """No two values are equal, and none is 0."""
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for include_self in (True, False):
            values = make.distinct(10) + make.dtype.carrier.type(0.25)
            index = make.indices(5, high=3)
            yield call(values[:3].copy(), 0, index, values[3:8].copy(), reduce, include_self=include_self)


def index_copy(make: Maker) -> Iterator[Sample]:
    yield call(make(7), 0, Fixed(np.array([6, 0, 3])), make(3))
    yield call(make(5, 3), 0, Fixed(np.array([4, 1])), make(2, 3))
    yield call(make(2, 3), 1, Fixed(np.array([2, 0])), make(2, 2))
    yield call(make(2, 3), 1, Fixed(np.array([], dtype=np.int64)), make(2, 0))


def index_reduce(make: Maker) -> Iterator[Sample]:
    for reduce in ("prod", "mean", "amax", "amin"):
        values = make.distinct(12)
        yield call(values[:3].copy(), 0, Fixed(np.array([2, 0, 2])), values[3:6].copy(), reduce)
        yield call(make.distinct(2, 3), 1, Fixed(np.array([2, 0])), make.distinct(2, 2) * 3, reduce, include_self=False)


def take(make: Maker) -> Iterator[Sample]:
    yield call(make(7), make.indices(9, low=-7, high=7))
    yield call(make(2, 3), make.indices(2, 2, high=6))
    yield call(make(), Fixed(np.array(0)))
    yield call(make(2, 3), make.indices(0, high=6))


def take_along_dim(make: Maker) -> Iterator[Sample]:
    yield call(make(5, 3), make.indices(2, 3, high=5), 0)
    yield call(make(5, 3), make.indices(5, 1, high=3), dim=1)
    yield call(make(1, 3), make.indices(4, 2, high=3), -1)
    yield call(make(2, 3), make.indices(4, high=6))


def put_line(make: Maker) -> Iterator[Sample]:
    yield call(make(7), Fixed(np.array([6, -7, 3])), make(3))
    yield call(make(2, 3), Fixed(np.array([[5], [0]])), make(2, 1))
    yield call(make(2, 3), Fixed(np.array([5, 0, 5])), make(3), True)
    yield call(make(2, 3), Fixed(np.array([], dtype=np.int64)), make(0))


def masked_scatter(make: Maker) -> Iterator[Sample]:
    for shape in ((7,), (3, 5)):
        yield call(make(*shape), make.mask(*shape), make(20))
    yield call(make(3, 5), make.mask(5), make(3, 5))
    yield call(make(3), Fixed(np.zeros(3, bool)), make(0))


def select_scatter(make: Maker) -> Iterator[Sample]:
    yield call(make(3), make(), 0, 1)
    yield call(make(2, 3), make(2), -1, -1)
    yield call(make(2, 3, 4), make(2, 4), 1, 0)


def as_strided_scatter(make: Maker) -> Iterator[Sample]:
    yield call(make(6), make(2, 2), (2, 2), (3, 1), 1)
    yield call(make(2, 3), make(2), (2,), (2,))


def slice_scatter(make: Maker) -> Iterator[Sample]:
    yield call(make(7), make(2), 0, 1, 3)
    yield call(make(2, 7), make(2, 3), 1, None, 6, 2)
    yield call(make(4, 2), make(4, 2))


def diagonal_scatter(make: Maker) -> Iterator[Sample]:
    yield call(make(3, 3), make(3))
    yield call(make(2, 4), make(2), 1)
    yield call(make(2, 3, 4), make(3, 2), 0, 0, 2)


def classes(make: Maker) -> Iterator[Sample]:
    for shape in ((5,), (2, 3), ()):
        yield call(make.indices(*shape, high=4), 4)
    yield call(make.indices(6, high=3))


def cat(make: Maker) -> Iterator[Sample]:
    yield call([make(3), make(4), make(1)])
    yield call([make(2, 3), make(5, 3)], 0)
    yield call([make(2, 3), make(2, 1), make(2, 0)], dim=-1)
    yield call([make(2, 17, 3), make(2, 16, 3)], 1)
    yield call([make(4, 2)])


def stack(make: Maker) -> Iterator[Sample]:
    yield call([make(), make(), make()])
    yield call([make(3), make(3)], 0)
    yield call([make(2, 3), make(2, 3), make(2, 3)], dim=-1)
    yield call([make(0, 2), make(0, 2)], 1)


def embedding(make: Maker) -> Iterator[Sample]:
    yield call(make.indices(4, high=7), make(7, 3))
    yield call(make.indices(2, 3, high=5), make(5, 2))
    yield call(make.indices(high=5), make(5, 2))
    yield call(make.indices(0, high=5), make(5, 2))


# ---- networks ---------------------------------------------------------------------------------------------------


def rfft2(make: Maker) -> Iterator[Sample]:
    """Lengths with small factors, a large prime one, of 1; sizes that pad and trim; dimensions in any order."""
    for shape in ((1, 1), (2, 3), (4, 4), (3, 5, 6), (2, 0, 4, 6), (7, 30), (1, 67), (2, 134)):
        yield call(make(*shape))
    yield call(make(4, 6), norm="ortho")
    yield call(make(3, 5), norm="forward")
    yield call(make(3, 5), norm="backward")
    yield call(make(3, 5), s=(4, 3))
    yield call(make(3, 5), (2, 8), norm="forward")
    yield call(make(3, 5), s=(-1, 7))
    yield call(make(3, 4, 5), dim=(2, 0))
    yield call(make(3, 4, 5), s=(2, 6), dim=(0, 1))
    yield call(make(3, 4, 5), dim=(0, 1, 2))
    yield call(make(6), dim=(0,))
    yield call(make(0, 3), s=(2, 2))


def rfft2_grad(make: Maker) -> Iterator[Sample]:
    for shape in ((1, 1), (2, 3), (2, 4), (2, 2, 2)):
        yield call(make(*shape))
    yield call(make(2, 3), s=(3, 2), norm="forward")
    yield call(make(3, 2, 2), dim=(2, 0), norm="ortho")


def addmm(make: Maker) -> Iterator[Sample]:
    draw = lambda *shape: make(*shape, low=-1, high=1)
    yield call(draw(2, 4), draw(2, 3), draw(3, 4))
    yield call(draw(4), draw(2, 3), draw(3, 4))
    yield call(draw(2, 4), draw(2, 3), draw(3, 4), beta=2, alpha=3)
    yield call(draw(2, 2), draw(2, 0), draw(0, 2))


def baddbmm(make: Maker) -> Iterator[Sample]:
    draw = lambda *shape: make(*shape, low=-1, high=1)
    yield call(draw(2, 2, 4), draw(2, 2, 3), draw(2, 3, 4))
    yield call(draw(4), draw(1, 2, 3), draw(1, 3, 4), beta=2, alpha=3)


def addbmm(make: Maker) -> Iterator[Sample]:
    draw = lambda *shape: make(*shape, low=-1, high=1)
    yield call(draw(2, 4), draw(3, 2, 3), draw(3, 3, 4))
    yield call(draw(4), draw(1, 2, 3), draw(1, 3, 4), beta=2, alpha=3)


def addr(make: Maker) -> Iterator[Sample]:
    draw = lambda *shape: make(*shape, low=-1, high=1)
    yield call(draw(2, 4), draw(2), draw(4))
    yield call(draw(4), draw(3), draw(4), beta=2, alpha=3)


def rsub(make: Maker) -> Iterator[Sample]:
    draw = lambda *shape: make(*shape, low=-1, high=1)
    yield call(draw(2, 4), draw(4))
    yield call(draw(2, 4), draw(2, 4), alpha=3)


def linear(make: Maker) -> Iterator[Sample]:
    draw = lambda *shape: make(*shape, low=-1, high=1)
    yield call(draw(3), draw(4, 3))
    yield call(draw(2, 3), draw(4, 3), draw(4))
    yield call(draw(2, 2, 3), draw(2, 3), draw(2))
    yield call(draw(0, 3), draw(2, 3), draw(2))


def linear_large(make: Maker) -> Iterator[Sample]:
    yield from linear(make)
    yield call(make(17, 33, low=-1, high=1), make(9, 33, low=-1, high=1), make(9, low=-1, high=1))


def softmax(make: Maker) -> Iterator[Sample]:
    yield call(make(7), 0)
    yield call(make(3, 2), 1)
    yield call(make(3, 2), 0)
    yield call(make(2, 3, 2), -2)
    yield call(make(), 0)
    yield call(make(0, 3), 1)


def softmax_large(make: Maker) -> Iterator[Sample]:
    yield from softmax(make)
    yield call(make(5, 33, low=-40, high=40), 1)
    yield call(make(3, 1023), -1)
    yield call(make(17, 3, 5), 0)


def loss_options(*, smoothing: bool) -> Samples:
    """Combines reduction x class weights x ignored targets (x label smoothing), for scores [N, C] and [N, C, d]."""

    def samples(make: Maker) -> Iterator[Sample]:
        for reduction in ("mean", "sum", "none"):
            for weight in (None, Constant(make(3, low=0.5, high=2))):
                for smooth in ({}, {"label_smoothing": 0.2}) if smoothing else ({},):
                    target = Fixed(np.array([2, 0, 1, 2]))
                    yield call(make(4, 3), target, weight, reduction=reduction, **smooth)
                    target = Fixed(np.array([1, -100, 2, 1]))
                    yield call(make(4, 3), target, weight, reduction=reduction, **smooth)
            yield call(make(2, 3, 2), make.indices(2, 2, high=3), ignore_index=1, reduction=reduction)

    return samples


def cross_entropy(make: Maker) -> Iterator[Sample]:
    yield from loss_options(smoothing=True)(make)
    odds = make.rng.uniform(0.1, 1, (4, 3))
    odds = Constant(make.dtype.round(odds / odds.sum(axis=1, keepdims=True)))
    yield call(make(4, 3), odds)
    yield call(make(4, 3), odds, label_smoothing=0.1, reduction="sum")
    yield call(make(33, 10), make.indices(33, high=10))


def mse_loss(make: Maker) -> Iterator[Sample]:
    for reduction in ("mean", "sum", "none"):
        yield call(make(3, 2), make(3, 2), reduction=reduction)
    yield call(make(33), make(33))
    yield call(make(), make())


def batch_norm(make: Maker) -> Iterator[Sample]:
    mean, variance = Constant(make(3)), Constant(make(3, low=0.5, high=2))
    for shape in ((4, 3), (19, 3), (3, 3, 2), (2, 3, 2, 2), (3, 3, 9)):
        affine = {"weight": make(3, low=0.5, high=2), "bias": make(3)}
        yield call(make(*shape), None, None, training=True)
        yield call(make(*shape), None, None, training=True, **affine)
        yield call(make(*shape), mean, variance, eps=1e-3)
        yield call(make(*shape), mean, variance, **affine)


def moments(make: Maker) -> Iterator[Sample]:
    yield call(make(7))
    yield call(make(5, 3), 0)
    yield call(make(3, 4, 5), (0, 2), keepdim=True)
    yield call(make(3, 4, 5), -1, False)
    yield call(make(3, 33), 1, correction=0)
    yield call(make(2, 5), (1,), True, True)
    yield call(make(4, 2), correction=1.5)


def norm(make: Maker) -> Iterator[Sample]:
    for p in ("fro", 1, 2, 3, 1.5, 0.5, -1, -2.5):
        yield call(make(4, 3, avoid=(0,)), p)
        yield call(make(4, 3, avoid=(0,)), p, 1, keepdim=True)
    for p in (0, float("inf"), float("-inf")):
        yield call(make.distinct(3, 4), p)
        yield call(make.distinct(3, 4), p, dim=(0,))
    yield call(make(2, 3, 4), dim=(0, -1))
    yield call(make(avoid=(0,)))


def layer_norm(make: Maker) -> Iterator[Sample]:
    for shape, last in (((4, 3), (3,)), ((2, 3, 4), (3, 4)), ((2, 3, 33), (33,))):
        yield call(make(*shape), last)
        yield call(make(*shape), last, make(*last, low=0.5, high=2), make(*last), 1e-3)
    yield call(make(70, 5), (5,), None, make(5))  # more rows than one piece of a sum over rows
    yield call(make(3, 4), (3, 4), make(3, 4))


def normalize(make: Maker) -> Iterator[Sample]:
    yield call(make(3, 4, avoid=(0,)))
    yield call(make(2, 3, 4, avoid=(0,)), 3.0, -1)
    yield call(make(5, avoid=(0,)), p=1.0, dim=0, eps=1e-3)


def binary_cross_entropy(make: Maker) -> Iterator[Sample]:
    for reduction in ("mean", "sum", "none"):
        yield call(make(3, 2), make(3, 2, low=0, high=1), reduction=reduction)
    yield call(make(33, low=-9, high=9), make(33, low=0, high=1))
    yield call(
        make(3, 2), make(3, 2, low=0, high=1), weight=make(2, low=0.5, high=2), pos_weight=make(2, low=1, high=3)
    )


# ---- copies and factories ---------------------------------------------------------------------------------------


def copy_(make: Maker) -> Iterator[Sample]:
    yield call(make(7), make(7))
    yield call(make(3, 5), make(5))
    yield call(make(2, 3), make())


def numbers(*cases: Any) -> Samples:
    """Returns samples without tensors: each case is a Sample."""
    return lambda make: iter(cases)


#: Only sizes.
sizes = numbers(call((2, 3)), call(()), call((0, 2)), call((1023,)))


def like(*rest: Any) -> Samples:
    """Makes samples of one tensor of several shapes, with further arguments."""
    return shapes(*((shape, *rest) for shape in ((), (0,), (7,), (2, 3))))


def gradients(make: Maker) -> Iterator[Sample]:
    """Makes a list of gradients of several sizes."""
    yield call([make(*size) for size in ((3, 5), (17,), (), (1023,), (0, 4))])


def optimizer(*options: dict) -> Samples:
    """Makes parameters and gradients of several sizes for each set of options, one list each."""

    def samples(make: Maker) -> Iterator[Sample]:
        for option in options:
            sizes = ((3, 5), (17,), (), (1023,))
            yield call([make(*size) for size in sizes], [make(*size) for size in sizes], **option)

    return samples


# ---- rearranging and order statistics ---------------------------------------------------------------------------


def stacked(*shapes: tuple) -> Samples:
    """Makes samples of a list of three tensors of one shape."""
    return lambda make: (call([make(*shape) for _ in range(3)]) for shape in shapes)


def repeat_interleave(make: Maker) -> Iterator[Sample]:
    yield call(make(7), 3)
    yield call(make(2, 3), 2)
    yield call(make(2, 3), 2, dim=1)
    yield call(make(2, 3), 0, 0)
    yield call(make(3, 2), Fixed(np.array([2, 0, 3])), dim=0)
    yield call(make(2, 3), Fixed(np.array([1, 2, 1], dtype=np.int32)), dim=-1)
    yield call(make(2, 2), Fixed(np.array([3])))


def topk(make: Maker) -> Iterator[Sample]:
    few = make.dtype.name in ("int8", "uint8", "bfloat16")  # values
    for shape, dim in LINES:
        if few and math.prod(shape) > 200:
            continue
        size = shape[dim] if shape else 1
        yield call(make.distinct(*shape), min(2, size), dim)  # test_ties.py has equal ones
        yield call(make.distinct(*shape), size, dim, False)


def topk_distinct(make: Maker) -> Iterator[Sample]:
    for shape, dim in SHORT_LINES:
        yield call(make.distinct(*shape), 1, dim)


def kthvalue(make: Maker) -> Iterator[Sample]:
    yield call(make.distinct(7), 3)
    yield call(make.distinct(5, 3), 5, 0)
    yield call(make.distinct(2, 3, 4), 1, 1, keepdim=True)
    yield call(make.distinct(), 1)


def kthvalue_distinct(make: Maker) -> Iterator[Sample]:
    yield call(make.distinct(4), 2)
    yield call(make.distinct(2, 3), 3, -1, keepdim=True)


def median(make: Maker) -> Iterator[Sample]:
    for shape in ((1,), (7,), (8,), (5, 3), ()):
        yield call(make.distinct(*shape))
    yield call(make.distinct(5, 4), 0)
    yield call(make.distinct(2, 6), -1, keepdim=True)


def median_distinct(make: Maker) -> Iterator[Sample]:
    yield call(make.distinct(4))
    yield call(make.distinct(2, 3), 1)


def quantile(make: Maker) -> Iterator[Sample]:
    yield call(make.distinct(7), 0.3)
    yield call(make.distinct(5, 4), 0.75, dim=0)
    yield call(make.distinct(2, 5), 0.5, -1, True)
    for name in ("lower", "higher", "midpoint", "nearest"):
        yield call(make.distinct(6), 0.3, interpolation=name)


def aminmax(make: Maker) -> Iterator[Sample]:
    yield call(make.distinct(7))
    yield call(make.distinct(5, 3), dim=0)
    yield call(make.distinct(2, 3, 4), dim=-1, keepdim=True)
    yield call(make.distinct())


def with_nan(make: Maker) -> Iterator[Sample]:
    for args in ((), (0,), (1,), (-1, True)):
        x = make(5, 3)
        if make.dtype.bits:
            x[1, 2] = x[4, 0] = np.nan
        yield call(x, *args)
    yield call(make(33))


def diff(make: Maker) -> Iterator[Sample]:
    yield call(make(7))
    yield call(make(2, 5), 2)
    yield call(make(5, 2), 1, 0)
    yield call(make(3), 5)
    yield call(make(2, 3), prepend=make(2, 1), append=make(2, 2))


def addmv_grad(make: Maker) -> Iterator[Sample]:
    low = {"low": -1, "high": 1}
    yield call(make(2, **low), make(2, 3, **low), make(3, **low))
    yield call(make(1, **low), make(3, 2, **low), make(2, **low), beta=2, alpha=3)


def addmv(make: Maker) -> Iterator[Sample]:
    yield from addmv_grad(make)
    low = {"low": -1, "high": 1}
    yield call(make(33, **low), make(33, 17, **low), make(17, **low))
    yield call(make(**low), make(2, 0, **low), make(0, **low), beta=0)


def whole(samples: Samples) -> Samples:
    """Leaves out the samples whose first operand broadcasts: an in-place op writes into it."""
    return lambda make: (sample for sample in samples(make) if sample.args[0].shape == sample.args[1].shape[:1])


addmv_whole, addmv_grad_whole = whole(addmv), whole(addmv_grad)


def without_empty(samples: Samples) -> Samples:
    """Leaves out the samples with an operand of no elements: a result of nothing belongs to no graph."""
    return lambda make: (
        sample for sample in samples(make) if all(np.size(getattr(a, "array", a)) for a in sample.args[:3])
    )
