"""Linear algebra: decompositions and solutions of matrices and batches of them, as PyTorch's ``torch.linalg``.

LAPACK does the work. It is opened when the first of these functions runs: OpenBLAS or another LAPACK of the system,
else the OpenBLAS that SciPy brings along; the environment variable ``VESTA_LAPACK_LIBRARY`` names a file to take
instead.

Example::

    >>> import vesta
    >>> q, r = vesta.linalg.qr(vesta.tensor([[3.0, 1.0], [4.0, 2.0]]))
    >>> vesta.allclose(q @ r, vesta.tensor([[3.0, 1.0], [4.0, 2.0]]))
    True
"""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

from vesta._names import listing

from . import _C, _linalg_functions, matmul
from ._C import LinAlgError as LinAlgError
from ._C import _linalg
from ._linalg_functions import *  # noqa: F403
from ._overridable import overridable

if TYPE_CHECKING:  # names that only the op list says
    from ._C._names_of_linalg import *  # noqa: F403

globals().update({name: getattr(_linalg, name) for name in vars(_linalg) if not name.startswith("_")})

__all__ = ["LinAlgError", "matmul", *(name for name in vars(_linalg) if not name.startswith("_"))]
__all__ += _linalg_functions.__all__
overridable(*(globals()[name] for name in _linalg_functions.__all__))


def _name_folders() -> None:
    """Tells the library where the libraries of SciPy and NumPy lie, if installed; nothing of them is imported."""
    folders = []
    for package in ("scipy", "numpy"):
        found = importlib.util.find_spec(package)
        if found is not None and found.origin is not None:
            folders.append(os.path.join(os.path.dirname(os.path.dirname(found.origin)), f"{package}.libs"))
    _C._set_lapack_folder(":".join(folders))


_name_folders()

__dir__ = listing(globals())
