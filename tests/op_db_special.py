"""Rows of the op table for special functions that are computed number by number, against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from op_db_row import Row, binary, call, unary
from scipy import special

#: Of one variable: name, reference, and bounds of samples.
FUNCTIONS: tuple[tuple[str, Callable[..., Any], tuple[float, float]], ...] = (
    ("bessel_j0", special.j0, (-20, 20)),
    ("bessel_j1", special.j1, (-20, 20)),
    ("bessel_y0", special.y0, (0.2, 20)),
    ("bessel_y1", special.y1, (0.2, 20)),
    ("modified_bessel_k0", special.k0, (0.2, 9)),
    ("modified_bessel_k1", special.k1, (0.2, 9)),
    ("scaled_modified_bessel_k0", special.k0e, (0.2, 9)),
    ("scaled_modified_bessel_k1", special.k1e, (0.2, 9)),
    ("airy_ai", lambda x: special.airy(x)[0], (-9, 5)),
    ("erfcx", special.erfcx, (-3, 9)),
    ("spherical_bessel_j0", lambda x: np.sinc(x / np.pi), (-9, 9)),
)


def third_kind(x: np.ndarray, n: int) -> np.ndarray:
    """Chebyshev polynomials V, by those of the second kind (Mason and Handscomb, 2003, 1.17)."""
    return special.eval_chebyu(n, x) - (special.eval_chebyu(n - 1, x) if n else 0)


def fourth_kind(x: np.ndarray, n: int) -> np.ndarray:
    """Chebyshev polynomials W (Mason and Handscomb, 2003, 1.18)."""
    return special.eval_chebyu(n, x) + (special.eval_chebyu(n - 1, x) if n else 0)


POLYNOMIALS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("chebyshev_polynomial_t", lambda x, n: special.eval_chebyt(n, x)),
    ("chebyshev_polynomial_u", lambda x, n: special.eval_chebyu(n, x)),
    ("chebyshev_polynomial_v", third_kind),
    ("chebyshev_polynomial_w", fourth_kind),
    ("shifted_chebyshev_polynomial_t", lambda x, n: special.eval_chebyt(n, 2 * x - 1)),
    ("shifted_chebyshev_polynomial_u", lambda x, n: special.eval_chebyu(n, 2 * x - 1)),
    ("shifted_chebyshev_polynomial_v", lambda x, n: third_kind(2 * x - 1, n)),
    ("shifted_chebyshev_polynomial_w", lambda x, n: fourth_kind(2 * x - 1, n)),
    ("hermite_polynomial_h", lambda x, n: special.eval_hermite(n, x)),
    ("hermite_polynomial_he", lambda x, n: special.eval_hermitenorm(n, x)),
    ("laguerre_polynomial_l", lambda x, n: special.eval_laguerre(n, x)),
    ("legendre_polynomial_p", lambda x, n: special.eval_legendre(n, x)),
)

#: Private ops that evaluate the rows below; each counts as covered by the first of them.
_KERNELS = {
    "bessel_j0": ("_special_function",),
    "chebyshev_polynomial_t": ("_orthogonal_polynomial",),
    "igamma": ("_igamma_slope", "_gamma_density"),
}


def covers(name: str, where: str = "special.") -> tuple[str, ...]:
    return (where + name, *_KERNELS.get(name, ()))


_HERE: dict[str, Any] = {"where": "special", "method": False, "inplace": False, "extremes": False, "ulp": 0}

OPS: list[Row] = [
    unary("entr", special.entr, (0.1, 9), dtypes="buihf", norm=4, **_HERE),
    unary("modified_bessel_i0", special.i0, (-12, 12), dtypes="buif", norm=16, **_HERE),
    unary("modified_bessel_i1", special.i1, (-12, 12), dtypes="buif", norm=16, **_HERE),
    *(unary(name, f, bounds, dtypes="buif", norm=16, covers=covers(name), **_HERE) for name, f, bounds in FUNCTIONS),
    *(
        unary(
            name,
            f,
            params=(call(3), call(0), call(1), call(6)),
            dtypes="buif",
            norm=16,
            covers=covers(name),
            **_HERE,
        )
        for name, f in POLYNOMIALS
    ),
    binary(
        "zeta",
        special.zeta,
        (1.5, 9),
        (0.3, 5),
        dtypes="uif",
        may="b",
        result="float",
        scalars=(2,),
        norm=8,
        gradgrad=False,  # by the first operand twice: NaN
        covers=("special.zeta", "_zeta_slope"),
        **_HERE,
    ),
    *(
        binary(
            name,
            f,
            (0.2, 9),
            (0.2, 9),
            dtypes="hf",
            scalars=(),
            extremes=False,
            ulp=0,
            norm=32,
            gradgrad=False,
            covers=covers(name, ""),
        )
        for name, f in (("igamma", special.gammainc), ("igammac", special.gammaincc))
    ),
]
