"""Optimizers and schedules of their learning rates: PyTorch's ``torch.optim``.

Most have fused steps; ``Adafactor``, ``LBFGS``, ``Muon`` and ``SparseAdam`` are rules of tensor operations.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vesta._names import listing

from . import lr_scheduler
from ._adafactor import Adafactor
from ._muon import Muon
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]


if TYPE_CHECKING:  # what follows imports on first use
    from . import swa_utils as swa_utils
else:

    def __getattr__(name: str) -> Any:
        """Imports what needs modules, on first use."""
        if name == "swa_utils":
            return importlib.import_module(".swa_utils", __name__)
        raise AttributeError(f"module 'vesta.optim' has no attribute {name!r}")


__dir__ = listing(globals(), "swa_utils", hidden="cyclic_schedules fused rule schedule sparse_adam state state_dict")
