"""tensorboardX: a writer of its own takes Vesta's tensors.

It turns what it is given into arrays by one function, ``make_np``, which knows PyTorch's tensors by the name of their
type. Here that function is told about Vesta's. (``vesta.utils.tensorboard.SummaryWriter`` needs no registration.)
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from vesta import Tensor
from vesta._names import listing
from vesta.utils.tensorboard import _plain

__all__ = ["register"]


def register() -> None:
    """Makes the methods of ``tensorboardX.SummaryWriter`` take tensors."""
    for name in ("x2num", "summary", "embedding", "writer"):
        importlib.import_module(f"tensorboardX.{name}")
    original = sys.modules["tensorboardX.x2num"].make_np
    if getattr(original, "knows_vesta", False):
        return

    def make_np(x: Any) -> Any:
        """Returns the values of a number, an array, a tensor or a list of them as an array, on the CPU."""
        return original(_plain(x) if isinstance(x, (Tensor, list)) else x)

    make_np.knows_vesta = True  # type: ignore[attr-defined]
    for name, module in list(sys.modules.items()):  # each has imported the function itself
        if name.startswith("tensorboardX.") and getattr(module, "make_np", None) is original:
            vars(module)["make_np"] = make_np


__dir__ = listing(globals())
