"""How tensors, modules and datasets show themselves in a notebook: the HTML that their ``_repr_html_`` returns.

Nothing here is called by a program that runs outside a notebook, and ``import vesta`` does not import it. What is
returned is bounded in size, contains no text that is not escaped, and needs no network: pictures are inline PNG.

Example::

    >>> import vesta
    >>> vesta.ones(2, 3)._repr_html_()[:4]
    '<div'
"""

from __future__ import annotations

from typing import Any

from vesta import _C
from vesta._names import listing

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
    enabled = _C._set_torch_function_enabled(False)
    try:
        from vesta.autograd import no_grad

        with no_grad():
            return _html(value)
    except Exception:  # of any kind: an object that cannot be shown must not break the cell
        return None
    finally:
        _C._set_torch_function_enabled(enabled)


def _html(value: Any) -> str | None:
    if isinstance(value, _C.Tensor):
        from .tensors import tensor_html

        return tensor_html(value)
    from vesta.nn import Module

    if isinstance(value, Module):
        from .modules import module_html

        return module_html(value)
    from .datasets import dataset_html

    return dataset_html(value)


__dir__ = listing(globals())
