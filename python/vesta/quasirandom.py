"""Quasirandom numbers: Sobol sequences.

The points are those of I. M. Sobol (1967) in the Gray code order of I. A. Antonov and V. M. Saleev (1979), with the
direction numbers of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM
J. Sci. Comput. 30 (2008), file new-joe-kuo-6.21201. ``sobol_directions.bin`` has them for the first 1,111 dimensions:
for each its primitive polynomial, and one initial number for each degree of it, 16 bits each, compressed by zlib. More
dimensions come from SciPy, where it is installed.
"""

from __future__ import annotations

import importlib.util
import os
import zlib

import vesta
from vesta import Tensor
from vesta._arguments import checked
from vesta._names import listing
from vesta._types import DType

__all__ = ["SobolEngine"]

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sobol_directions.bin")
#: The number of dimensions in it.
_OWN = 1111


def _own_table(dimension: int) -> tuple[list[int], list[list[int]]]:
    """Returns the primitive polynomials and the initial numbers of the first dimensions, from this package's file."""
    with open(_FILE, "rb") as file:
        words = memoryview(zlib.decompress(file.read())).cast("H")
    polynomials, initial, at = [], [], 0
    for _ in range(dimension):
        polynomials.append(words[at])
        degree = polynomials[-1].bit_length() - 1
        initial.append(list(words[at + 1 : at + 1 + degree]))
        at += 1 + degree
    return polynomials, initial


def _scipys_table(dimension: int) -> tuple[list[int], list[list[int]]]:
    """Returns the same for more dimensions, from the file that SciPy's ``stats.qmc.Sobol`` reads.

    Raises:
        ValueError: there is no SciPy, or it has no such file.
    """
    found = importlib.util.find_spec("scipy")
    folder = os.path.dirname(found.origin) if found is not None and found.origin is not None else ""
    path = os.path.join(folder, "stats", "_sobol_direction_numbers.npz")
    if not os.path.isfile(path):
        raise ValueError(
            f"SobolEngine: expected at most {_OWN} dimensions without SciPy, got {dimension}. Install SciPy, which has "
            "the table for more."
        )
    import numpy as np

    with np.load(path) as table:
        return table["poly"][:dimension].tolist(), table["vinit"][:dimension].tolist()


def _directions(dimension: int, bits: int) -> Tensor:
    """Returns the direction numbers of the first dimensions [dimension, bits], as binary fractions of that many bits.

    For a polynomial of degree s, x^s + a_1 x^(s-1) + ... + 1, and initial numbers m_1 ... m_s, the others follow from
    m_k = 2 a_1 m_(k-1) ^ 4 a_2 m_(k-2) ^ ... ^ 2^s m_(k-s) ^ m_(k-s); the k-th direction number is m_k / 2^k.
    """
    polynomials, initial = (_own_table if dimension <= _OWN else _scipys_table)(dimension)
    m = vesta.ones(dimension, bits, dtype=vesta.int64)  # those of the first dimension
    by_degree: dict[int, list[int]] = {}
    for index in range(1, dimension):
        by_degree.setdefault(polynomials[index].bit_length() - 1, []).append(index)
    for degree, places in by_degree.items():
        polynomial = vesta.tensor([polynomials[index] for index in places])
        columns = list(vesta.tensor([initial[index][:degree] for index in places]).unbind(1))[:bits]
        for k in range(len(columns), bits):
            value = columns[k - degree] ^ (columns[k - degree] << degree)
            for i in range(1, degree):
                value = value ^ ((columns[k - i] << i) * (polynomial >> (degree - i) & 1))
            columns.append(value)
        m[vesta.tensor(places)] = vesta.stack(columns, 1)
    return m << vesta.arange(bits - 1, -1, -1)


class SobolEngine:
    """A Sobol sequence: points that fill the unit cube more evenly than random ones.

    Args:
        dimension: of the cube, 1 to 21,201; SciPy must be installed for more than 1,111.
        scramble: whether the points are scrambled, by random lower triangular matrices and a random shift of the digits
            (J. Matousek, "On the L2-discrepancy for anchored boxes", 1998).
        seed: of the scrambling; None: the default generator.

    Raises:
        ValueError: ``dimension`` is out of range, or there is no SciPy for it.

    Example::

        >>> import vesta
        >>> vesta.quasirandom.SobolEngine(2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    @checked
    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = _directions(dimension, self.MAXBIT)
        self.shift = vesta.zeros(dimension, dtype=vesta.int64)
        if scramble:
            self.sobolstate, self.shift = self._scrambled(self.sobolstate)
        self._columns = [self.sobolstate[:, bit].contiguous() for bit in range(self.MAXBIT)]
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def _scrambled(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Multiplies the digits of direction numbers with random triangular matrices, and draws the shift."""
        generator = None
        if self.seed is not None:
            generator = vesta.Generator()
            generator.manual_seed(self.seed)
        bits = self.MAXBIT
        shifts = vesta.randint(0, 2, (self.dimension, bits), generator=generator)
        matrices = vesta.randint(0, 2, (self.dimension, bits, bits), generator=generator)
        # Row r of a matrix gives digit r (from the left) from the digits up to r; the diagonal is 1.
        rows = matrices.to(vesta.float32).tril(-1) + vesta.eye(bits)
        place = vesta.arange(bits - 1, -1, -1)  # of a digit: what it is shifted by
        digits = (numbers.unsqueeze(1) >> place.unsqueeze(1) & 1).to(vesta.float32)  # [dimension, digit, number]
        made = (rows @ digits).to(vesta.int64) & 1  # sums of at most 30 ones are exact
        return (made << place.unsqueeze(1)).sum(1), (shifts << place.flip(0)).sum(1)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """Returns the next ``n`` points [n, dimension], in [0, 1).

        Args:
            out: a tensor of that shape for the result.
            dtype: of the result; default: the default dtype.
        """
        dtype = vesta.get_default_dtype() if dtype is None else dtype
        rows = []
        for _ in range(n):
            rows.append(self.quasi)
            self._advance()
        points = vesta.stack(rows) if rows else self.quasi.new_empty((0, self.dimension))
        result = (points.to(vesta.float64) * 2.0**-self.MAXBIT).to(dtype)
        return result if out is None else vesta._C._write_out("SobolEngine.draw", result, out)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """Returns the next 2 ** m points; the sequence is balanced over powers of two only.

        Raises:
            ValueError: the number of points would then be no power of two.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: n={self.num_generated}+2**{m}="
                f"{total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n, out=out, dtype=dtype)

    def _advance(self) -> None:
        """Goes to the next point: it differs in one direction number, that of the lowest zero bit of its index."""
        index = self.num_generated
        bit = (~index & (index + 1)).bit_length() - 1
        if bit >= self.MAXBIT:
            raise ValueError(f"SobolEngine: expected fewer than 2**{self.MAXBIT} points.")
        self.quasi = self.quasi ^ self._columns[bit]
        self.num_generated += 1

    def fast_forward(self, n: int) -> SobolEngine:
        """Skips ``n`` points; returns itself."""
        target = self.num_generated + n
        gray = target ^ (target >> 1)  # the directions in the point of that index
        self.quasi = self.shift.clone()
        for bit in range(min(gray.bit_length(), self.MAXBIT)):
            if gray >> bit & 1:
                self.quasi = self.quasi ^ self._columns[bit]
        self.num_generated = target
        return self

    def reset(self) -> SobolEngine:
        """Goes back to the first point; returns itself."""
        self.quasi, self.num_generated = self.shift.clone(), 0
        return self

    def __repr__(self) -> str:
        text = f"dimension={self.dimension}"
        if self.scramble:
            text += ", scramble=True"
        if self.seed is not None:
            text += f", seed={self.seed}"
        return f"{type(self).__name__}({text})"


__dir__ = listing(globals())
