"""Quasirandom numbers: Sobol sequences.

The points are those of I. M. Sobol (1967) in the Gray code order of I. A. Antonov and V. M. Saleev (1979), with the
direction numbers of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM
J. Sci. Comput. 30 (2008), file new-joe-kuo-6.21201. ``sobol_directions.bin`` has them for the first 1,111 dimensions:
for each its primitive polynomial, and one initial number for each degree of it, 16 bits each, compressed by zlib.
"""

from __future__ import annotations

import os
import zlib
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked

__all__ = ["SobolEngine"]

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sobol_directions.bin")


def _directions(dimension: int, bits: int) -> list[list[int]]:
    """Returns the direction numbers of the first dimensions, ``bits`` for each, as binary fractions of that many bits.

    For a polynomial of degree s, x^s + a_1 x^(s-1) + ... + 1, and initial numbers m_1 ... m_s, the others follow from
    m_k = 2 a_1 m_(k-1) ^ 4 a_2 m_(k-2) ^ ... ^ 2^s m_(k-s) ^ m_(k-s); the k-th direction number is m_k / 2^k.
    """
    with open(_FILE, "rb") as file:
        words = memoryview(zlib.decompress(file.read())).cast("H")
    found, at = [], 0
    for index in range(dimension):
        polynomial = words[at]
        degree = polynomial.bit_length() - 1
        m = list(words[at + 1 : at + 1 + degree]) if index else [1] * bits
        at += 1 + degree
        for k in range(len(m), bits):
            value = m[k - degree] ^ (m[k - degree] << degree)
            for i in range(1, degree):
                if polynomial >> (degree - i) & 1:
                    value ^= m[k - i] << i
            m.append(value)
        found.append([m[k] << (bits - 1 - k) for k in range(bits)])
    return found


def _product(rows: list[int], value: int) -> int:
    """Returns the product of a matrix of bits, given by its rows, and a number's digits, modulo 2."""
    return sum((bin(row & value).count("1") & 1) << k for k, row in enumerate(reversed(rows)))


class SobolEngine:
    """A Sobol sequence: points that fill the unit cube more evenly than random ones.

    Args:
        dimension: of the cube, 1 to 1,111.
        scramble: whether the points are scrambled, by random lower triangular matrices and a random shift of the digits
            (J. Matousek, "On the L2-discrepancy for anchored boxes", 1998).
        seed: of the scrambling; None: the default generator.

    Raises:
        ValueError: ``dimension`` is out of range.

    Example::

        >>> import vesta
        >>> vesta.quasirandom.SobolEngine(2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 1111

    @checked
    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        numbers = _directions(dimension, self.MAXBIT)
        shift = [0] * dimension
        if scramble:
            numbers, shift = self._scrambled(numbers)
        self.sobolstate = vesta.tensor(numbers, dtype=vesta.int64)
        self.shift = vesta.tensor(shift, dtype=vesta.int64)
        self._columns = [self.sobolstate[:, bit].contiguous() for bit in range(self.MAXBIT)]
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def _scrambled(self, numbers: list[list[int]]) -> tuple[list[list[int]], list[int]]:
        """Multiplies the digits of direction numbers with random triangular matrices, and draws the shift."""
        generator = None
        if self.seed is not None:
            generator = vesta.Generator()
            generator.manual_seed(self.seed)
        bits = self.MAXBIT
        shifts = vesta.randint(0, 2, (self.dimension, bits), generator=generator).tolist()
        matrices = vesta.randint(0, 2, (self.dimension, bits, bits), generator=generator).tolist()
        made = []
        for matrix, column in zip(matrices, numbers):
            # Row r of a matrix gives digit r (from the left) from the digits up to r; the diagonal is 1.
            rows = [sum(matrix[r][c] << (bits - 1 - c) for c in range(r)) | 1 << (bits - 1 - r) for r in range(bits)]
            made.append([_product(rows, value) for value in column])
        return made, [sum(bit << k for k, bit in enumerate(row)) for row in shifts]

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
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
        return result if out is None else out.copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
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
