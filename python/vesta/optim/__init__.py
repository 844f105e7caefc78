"""Optimizers and schedules of their learning rates: PyTorch's ``torch.optim`` with fused steps."""

from __future__ import annotations

from . import lr_scheduler
from .adam import Adam
from .adamw import AdamW
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "RMSprop", "SGD", "lr_scheduler"]
