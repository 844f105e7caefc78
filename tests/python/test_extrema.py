"""Places of extrema: the first of equal elements, NaN before every number, along any dimension of any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vesta

DTYPES = ["float32", "float64", "int64", "int32", "int8", "uint8"]
# sizes, dimension: columns side by side in strips of 64 and fewer, rows in blocks of 128 and fewer, few and many
SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((5, 64), 0),
    ((300, 129), 0),
    ((3, 17, 16), 1),
    ((2, 7, 5, 40), 1),
    ((4, 8, 70), 0),
    ((6, 300), 1),
    ((3, 128), 1),
    ((1, 90), 0),
    ((70000, 20), 0),
    ((2, 140000), 1),
]


def numbers(sizes: tuple[int, ...], dtype: str) -> Any:
    """Few different values, so that most extrema occur several times."""
    return np.random.default_rng(0).integers(0, 9, sizes).astype(dtype)


@pytest.mark.parametrize("sizes,dim", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_equals(sizes: tuple[int, ...], dim: int, dtype: str) -> None:
    x = numbers(sizes, dtype)
    t = vesta.from_numpy(x.copy())
    apart = vesta.zeros(*sizes, 2, dtype=t.dtype)[..., 0].copy_(t)
    for given in (t, apart, vesta.from_numpy(np.ascontiguousarray(x.swapaxes(0, -1))).transpose(0, -1)):
        assert np.array_equal(given.argmax(dim).numpy(), x.argmax(dim))
        assert np.array_equal(given.argmin(dim).numpy(), x.argmin(dim))
        values, indices = given.max(dim)
        assert np.array_equal(values.numpy(), x.max(dim)) and np.array_equal(indices.numpy(), x.argmax(dim))
        values, indices = given.min(dim)
        assert np.array_equal(values.numpy(), x.min(dim)) and np.array_equal(indices.numpy(), x.argmin(dim))


@pytest.mark.parametrize("sizes,dim", SHAPES)
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16, vesta.float16])
def test_the_first_nan_wins(sizes: tuple[int, ...], dim: int, dtype: Any) -> None:
    x = numbers(sizes, "float64")
    flat = x.reshape(-1)
    flat[np.random.default_rng(1).integers(0, flat.size, 1 + flat.size // 50)] = np.nan
    x[np.random.default_rng(2).random(sizes) < 0.02] = -np.inf
    t = vesta.from_numpy(x).to(dtype)
    assert np.array_equal(t.argmax(dim).numpy(), x.argmax(dim))  # numpy takes the first NaN too
    assert np.array_equal(t.argmin(dim).numpy(), x.argmin(dim))


def test_booleans_down_the_columns() -> None:
    x = numbers((50, 70), "int64") > 6
    assert np.array_equal(vesta.from_numpy(x).max(0).indices.numpy(), x.argmax(0))
