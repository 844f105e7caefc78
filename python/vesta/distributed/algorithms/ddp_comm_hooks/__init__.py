"""Communication hooks of ``DistributedDataParallel``, by name."""

from __future__ import annotations

import functools
from enum import Enum
from typing import Any

from vesta._names import listing

from . import debugging_hooks as debugging
from . import default_hooks as default

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _register(model: Any, state: Any, hook: Any) -> None:
    model.register_comm_hook(state, hook)


class DDPCommHookType(Enum):
    """The available hooks, each registered by ``kind.value(model=..., state=...)``."""

    ALLREDUCE = functools.partial(_register, hook=default.allreduce_hook)
    FP16_COMPRESS = functools.partial(_register, hook=default.fp16_compress_hook)
    BF16_COMPRESS = functools.partial(_register, hook=default.bf16_compress_hook)
    NOOP = functools.partial(_register, hook=debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Registers one of ``DDPCommHookType`` with a ``DistributedDataParallel`` model."""
    comm_hook_type.value(model=model, state=state)


__dir__ = listing(globals())
