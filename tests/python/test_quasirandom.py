"""``vesta.quasirandom``: Sobol points against SciPy's, their balance when scrambled, and going to a point."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import vesta
from scipy.stats import qmc
from vesta.quasirandom import SobolEngine


@pytest.mark.parametrize(("dimension", "n"), [(1, 64), (2, 33), (7, 100), (40, 32), (1111, 5), (1112, 5), (21201, 3)])
def test_points_are_those_of_joe_and_kuo(dimension: int, n: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about numbers of points that are no power of two
        expected = qmc.Sobol(dimension, scramble=False, bits=30).random(n)
    found = SobolEngine(dimension).draw(n, dtype=vesta.float64)
    assert np.array_equal(found.numpy(), expected)


@pytest.mark.parametrize("scramble", [False, True])
def test_points_are_balanced_over_powers_of_two(scramble: bool) -> None:
    points = SobolEngine(3, scramble=scramble, seed=1).draw_base2(8)
    for column in points.t():
        assert sorted((column * 256).floor().tolist()) == list(range(256))
    cells = {tuple(cell) for cell in (points[:, :2] * 16).floor().tolist()}
    assert len(cells) == 256  # one point in each cell of 16 by 16: the first two dimensions are a (0, 2)-sequence


def test_a_seed_fixes_the_scrambling() -> None:
    first, again, other = (SobolEngine(3, scramble=True, seed=seed).draw(4) for seed in (5, 5, 6))
    assert vesta.equal(first, again) and not vesta.equal(first, other)


def test_going_to_a_point_and_back() -> None:
    engine = SobolEngine(4, scramble=True, seed=0)
    points = engine.draw(40)
    assert engine.num_generated == 40 and vesta.equal(engine.reset().draw(1), points[:1])
    assert vesta.equal(engine.reset().fast_forward(13).draw(2), points[13:15])
    assert vesta.equal(engine.fast_forward(4).draw(1), points[19:20])
    out = vesta.empty(3, 4)
    assert engine.reset().draw(3, out=out) is out and vesta.equal(out, points[:3])
    assert engine.draw(0).shape == (0, 4) and engine.draw(1, dtype=vesta.float64).dtype == vesta.float64
    assert repr(engine) == "SobolEngine(dimension=4, scramble=True, seed=0)"


def scrambling_written_out(dimension: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns what ``SobolEngine`` makes of direction numbers and shift, from the same draws, digit by digit."""
    generator = vesta.Generator().manual_seed(seed)
    shifts = vesta.randint(0, 2, (dimension, 30), generator=generator).numpy()
    matrices = vesta.randint(0, 2, (dimension, 30, 30), generator=generator).numpy()
    plain = SobolEngine(dimension).sobolstate.numpy()
    digits = plain[:, :, None] >> np.arange(29, -1, -1) & 1  # [dimension, number, digit]
    made = np.zeros_like(plain)
    for d in range(dimension):
        lower = np.tril(matrices[d], -1) + np.eye(30, dtype=np.int64)
        for k in range(30):
            made[d, k] = sum(int(bit) << (29 - r) for r, bit in enumerate(lower @ digits[d, k] % 2))
    return made, (shifts << np.arange(30)).sum(1)


def test_scrambling_is_a_triangular_matrix_of_digits() -> None:
    engine = SobolEngine(5, scramble=True, seed=3)
    numbers, shift = scrambling_written_out(5, 3)
    assert np.array_equal(engine.sobolstate.numpy(), numbers) and np.array_equal(engine.shift.numpy(), shift)


@pytest.mark.differs
def test_many_dimensions_need_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert SobolEngine(1111).draw(1).shape == (1, 1111)
    with pytest.raises(ValueError, match="at most 1111 dimensions without SciPy, got 1112. Install SciPy"):
        SobolEngine(1112)


def test_wrong_arguments() -> None:
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 21201\]"):
            SobolEngine(dimension)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match="require n to be a power of 2. 3 points"):
        engine.draw_base2(2)
    engine.fast_forward(2**30 - 4)
    with pytest.raises(ValueError, match=r"fewer than 2\*\*30 points"):
        engine.draw(2)
