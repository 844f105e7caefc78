"""Libraries that ask for PyTorch's tensors by type, told about Vesta's: einops, opt_einsum and tensorboardX.

Libraries that ask for NumPy arrays (matplotlib, pandas, scikit-learn) need nothing: ``docs/interoperability.md`` says
what works with each.

Example::

    >>> import vesta
    >>> vesta.adapters.register("einops")  # doctest: +SKIP
    ('einops',)
    >>> import einops  # doctest: +SKIP
    >>> einops.rearrange(vesta.ones(2, 3), "a b -> (b a)").shape  # doctest: +SKIP
    vesta.Size([6])
"""

from __future__ import annotations

import importlib
import importlib.util

from vesta._names import listing

__all__ = ["register"]

#: The libraries that there are adapters for; each has a module of its name here, with a function ``register``.
LIBRARIES = ("einops", "opt_einsum", "tensorboardX")


def register(*names: str) -> tuple[str, ...]:
    """Tells libraries about Vesta's tensors, once per process; a second call does nothing more.

    Args:
        names: ``"einops"``, ``"opt_einsum"``, ``"tensorboardX"``; none: all of them that are installed.

    Returns:
        The names of the libraries that know Vesta now.

    Raises:
        ValueError: there is no adapter of that name.
        ImportError: a library that was named is not installed.

    Example::

        >>> import vesta
        >>> set(vesta.adapters.register()) <= {"einops", "opt_einsum", "tensorboardX"}
        True
    """
    for name in names:
        if name not in LIBRARIES:
            raise ValueError(f"register: expected names of {', '.join(LIBRARIES)}, got {name!r} (names).")
    chosen = names or tuple(name for name in LIBRARIES if importlib.util.find_spec(name))
    for name in chosen:
        importlib.import_module(f".{name}", __name__).register()
    return chosen


__dir__ = listing(globals())
