"""Sample generators of the rows of linear algebra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Callable

import numpy as np
from op_db_row import Maker, Sample, call

Samples = Callable[[Maker], Iterable[Sample]]


def qr(make: Maker) -> Iterator[Sample]:
    for shape in ((1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 3), (2, 0, 3, 4), (0, 3), (3, 0), (0, 0), (40, 33)):
        yield call(make(*shape))
        yield call(make(*shape), "complete")
    yield call(make(5, 3), mode="reduced")


def qr_grad(make: Maker) -> Iterator[Sample]:
    def matrix(*shape: int) -> np.ndarray:
        """Matrices with independent columns."""
        return make(*shape, low=-1, high=1) + (3 * np.eye(*shape[-2:])).astype(make.dtype.carrier)

    for shape in ((1, 1), (2, 2), (4, 2), (2, 4), (2, 3, 3), (0, 3)):
        yield call(matrix(*shape))
    yield call(matrix(2, 3), "complete")
    yield call(matrix(3, 3), mode="complete")


def solve_triangular(make: Maker) -> Iterator[Sample]:
    """Matrices with a large diagonal, of which the other triangle must not be read."""

    def matrix(*shape: int) -> np.ndarray:
        return make(*shape, low=-1, high=1) + (4 * np.eye(shape[-1])).astype(make.dtype.carrier)

    for upper in (True, False):
        yield call(matrix(2, 2), make(2, 2), upper=upper)
        yield call(matrix(2, 2), make(2, 3), upper=upper)
        yield call(matrix(2, 2), make(1, 2), upper=upper, left=False)
        yield call(matrix(2, 2, 2), make(2, 1), upper=upper, unitriangular=True)
        yield call(matrix(2, 2), make(2, 1, 2), upper=upper, left=False, unitriangular=True)
    yield call(matrix(0, 0), make(0, 2), upper=True)
    yield call(matrix(2, 2), make(2, 2, 2), upper=False)


def _regular(make: Maker, *shape: int) -> np.ndarray:
    """Makes matrices far from singular ones, with pivots off the diagonal."""
    matrix = make(*shape, low=-1, high=1) + (4 * np.eye(*shape[-2:])).astype(make.dtype.carrier)
    return np.ascontiguousarray(matrix[..., ::-1, :])


def regular() -> Samples:
    return lambda make: (call(_regular(make, *n)) for n in ((1, 1), (2, 2), (3, 3), (2, 3, 3)))


def positive_definite(*params: Sample) -> Samples:
    """Makes Hermitian positive-definite matrices; the gradient is that of A A^H + n in ``op_db_calls``' functions."""

    def matrix(make: Maker, *shape: int) -> np.ndarray:
        a = make(*shape, low=-1, high=1)
        return make.dtype.round(a @ np.conj(np.swapaxes(a, -1, -2)) + 2 * np.eye(shape[-1]))

    return lambda make: (
        call(matrix(make, *n), **kwargs) for n in ((1, 1), (2, 2), (2, 3, 3), (3, 3)) for _, kwargs in params
    )


def cholesky_factor(make: Maker) -> Iterator[Sample]:
    for n in ((1, 1), (2, 2), (2, 3, 3)):
        yield call(np.tril(_regular(make, *n)[..., ::-1, :]).copy())
    yield call(np.triu(_regular(make, 2, 2)[::-1]).copy(), upper=True)


def cholesky_solve(make: Maker) -> Iterator[Sample]:
    for n in ((1, 1), (2, 2), (2, 3, 3)):
        yield call(make(*n[:-1], 2), np.tril(_regular(make, *n)[..., ::-1, :]).copy())
    yield call(make(2, 1), np.triu(_regular(make, 2, 2)[::-1]).copy(), upper=True)


def systems(*params: Sample) -> Samples:
    return lambda make: (
        call(_regular(make, *n), make(*n[:-1], 2), **kwargs)
        for n in ((1, 1), (2, 2), (2, 3, 3))
        for _, kwargs in params
    )


def systems_last(make: Maker) -> Iterator[Sample]:
    for n in ((1, 1), (2, 2), (2, 3, 3)):
        yield call(make(*n[:-1], 2), _regular(make, *n))


def solve(make: Maker) -> Iterator[Sample]:
    for n in ((1, 1), (2, 2), (2, 3, 3)):
        yield call(_regular(make, *n), make(*n[:-1], 2))
    yield call(_regular(make, 2, 2), make(2))
    yield call(_regular(make, 2, 3, 3), make(2, 3))
    yield call(_regular(make, 2, 2), make(3, 2), left=False)
    yield call(_regular(make, 2, 2), make(3, 2, 1))


def squares(make: Maker) -> Iterator[Sample]:
    for n in ((1, 1), (2, 2), (2, 3, 3)):
        yield call(make(*n, low=-1, high=1))


def apart(make: Maker) -> Iterator[Sample]:
    """Makes matrices whose eigenvalues are apart from each other."""
    for n in ((1, 1), (2, 2), (2, 3, 3)):
        spread = np.diag(3.0 * np.arange(n[-1])).astype(make.dtype.carrier)
        yield call(make.dtype.round(make(*n, low=-0.5, high=0.5) + spread))


def rectangles(make: Maker) -> Iterator[Sample]:
    """Makes matrices whose singular values are apart from each other and from 0."""
    for n in ((1, 1), (2, 2), (4, 2), (2, 3), (2, 3, 3)):
        spread = np.zeros(n[-2:])
        np.fill_diagonal(spread, 2.0 * np.arange(1, min(n[-2:]) + 1))
        yield call(make.dtype.round(make(*n, low=-0.4, high=0.4) + spread))


def tall(make: Maker) -> Iterator[Sample]:
    """Makes matrices with at least as many rows as columns, of full rank."""
    yield from (sample for sample in rectangles(make) if sample.args[0].shape[-2] >= sample.args[0].shape[-1])


def powers(make: Maker) -> Iterator[Sample]:
    yield call(_regular(make, 2, 2), 0)
    yield from powers_grad(make)


def powers_grad(make: Maker) -> Iterator[Sample]:
    for n in (1, 2, 5, -1, -2):
        yield call(_regular(make, 2, 2), n)
    yield call(_regular(make, 2, 3, 3), 3)


def triangular_solve(make: Maker) -> Iterator[Sample]:
    for upper in (True, False):
        for transpose in (True, False):
            matrix = _regular(make, 2, 2)[::-1].copy()
            yield call(make(2, 3), matrix, upper, transpose)
    yield call(make(2, 1), _regular(make, 2, 2)[::-1].copy(), unitriangular=True)


def reflections(make: Maker) -> Iterator[Sample]:
    """Columns of reflections, their factors, and a matrix to turn."""
    draw = lambda *shape: make(*shape, low=-1, high=1)
    yield call(draw(3, 3), draw(3), draw(3, 2))
    yield call(draw(5, 3), draw(3), draw(5, 2), True, True)
    yield call(draw(2, 5), draw(2), draw(2, 3))
    yield call(draw(2, 4, 2), draw(2, 2), draw(2, 3, 4), False)
    yield call(draw(2, 4, 2), draw(2, 2), draw(2, 3, 4), left=False, transpose=True)


def reflectors(make: Maker) -> Iterator[Sample]:
    """Columns of reflections, and their factors."""
    for shape, k in (((3, 3), 3), ((5, 3), 2), ((2, 4, 2), 2)):
        yield call(make(*shape, low=-1, high=1), make(*shape[:-2], k, low=-1, high=1))
