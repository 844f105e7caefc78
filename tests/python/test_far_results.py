"""Results that no cache holds are written past the caches: with the bits of small ones, wherever their lines begin."""

from __future__ import annotations

import numpy as np
import pytest
import vesta
from op_db_check import assert_same
from op_db_check import random_tensor as random

LENGTH = 4320  # with ROWS, more bytes of float32 than a last level of 32 MiB
ROWS = 2000


@pytest.mark.parametrize("offset", [0, 1, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_copies(dtype: str, offset: int) -> None:
    values = np.arange(ROWS * LENGTH, dtype=np.int32)
    x = vesta.from_numpy(values)
    kept = vesta.full((values.size + 2 * offset,), 77.0).to(getattr(vesta, dtype))
    to = kept[offset : offset + values.size]
    to.copy_(x % 2039)
    np.testing.assert_array_equal(to.numpy(), (values % 2039).astype(dtype))
    assert (kept[:offset] == 77).all() and (kept[offset + values.size :] == 77).all()
    np.testing.assert_array_equal(to.clone().numpy(), to.numpy())


@pytest.mark.parametrize("first", [0, 3])
def test_copies_of_rows(first: int) -> None:
    x = vesta.arange(ROWS * (LENGTH + 8)).view(ROWS, LENGTH + 8)
    part = x[:, first : first + LENGTH]
    np.testing.assert_array_equal(part.contiguous().numpy(), x.numpy()[:, first : first + LENGTH])
    np.testing.assert_array_equal(part.double().numpy(), x.numpy()[:, first : first + LENGTH].astype("float64"))


@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize(("dtype", "length"), [("float32", LENGTH), ("float32", LENGTH + 1), ("float64", LENGTH // 2)])
def test_running_sums(dtype: str, length: int, op: str) -> None:
    x = random(ROWS + 3, length, dtype=dtype).mul_(0.1).add_(1.0)
    y = getattr(x, op)(1)
    for row in (0, 1, 7, 8, 15, 16, 998, ROWS - 1, ROWS, ROWS + 2):
        assert_same(y[row], getattr(x[row].clone(), op)(0), f"row {row}")
    out = vesta.empty(ROWS + 3, length, dtype=x.dtype)
    getattr(vesta, op)(x, 1, out=out)
    assert_same(out, y, "out")
