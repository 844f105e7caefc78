"""How tensors, modules and datasets show themselves in a notebook: the HTML that their ``_repr_html_`` returns.

Nothing here is called by a program that runs outside a notebook, and ``import vesta`` does not import it. What is
returned is bounded in size, contains no text that is not escaped, and needs no network: pictures are inline PNG.

Example::

    >>> import vesta
    >>> vesta.ones(2, 3)._repr_html_()[:4]
    '<div'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vesta import _C
from vesta._names import listing
from vesta.autograd import no_grad

__all__ = ["show"]


def show(value: Any) -> str | None:
    """Returns the HTML of a tensor, a module or a dataset; None where it cannot be made, so that ``repr`` is shown.

    Args:
        value: a ``vesta.Tensor`` of any shape, dtype, layout and device, a ``vesta.nn.Module``, or a dataset or loader
            of ``vesta.utils.data``.

    It never raises. It reads at most a million elements (fewer on a GPU), leaves the states of random generators as
    they are, and records nothing for backward. Of a dataset of the user's own class it makes the first sample.

    Example::

        >>> import vesta
        >>> "NaN" in vesta.notebook.show(vesta.tensor([1.0, float("nan")]))
        True
    """
    return rendered(_page, value)


def _page(value: Any) -> str | None:
    page = getattr(value, "_repr_html_", None)
    return page() if callable(page) else None


def rendered(page: Callable[..., str | None], *args: Any) -> str | None:
    """Returns the HTML that ``page`` makes of an object; None where it raises. Nothing is recorded or overridden."""
    enabled = _C._set_torch_function_enabled(False)
    try:
        with no_grad():
            return page(*args)
    except Exception:  # of any kind: an object that cannot be shown must not break the cell
        return None
    finally:
        _C._set_torch_function_enabled(enabled)


__dir__ = listing(globals())
